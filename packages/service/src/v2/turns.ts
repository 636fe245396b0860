/**
 * Looks of all who watch, one at a time, and after each the store is left alone for four times as long. However many
 * watch however much, looking takes at most a fifth of the time; what there is more of is seen later.
 */
import { after, type Cancel, monotonicMs } from '../clock.js';

const REST = 4;

/** Never rejects. */
type Look = () => Promise<void>;

export class Turns {
  readonly #waiting = new Set<Look>();
  #isTaken = false;
  #freeMs = 0;
  #cancel: Cancel = () => undefined;

  /** Runs it when its turn comes, unless cancelled before by the function returned. */
  ask(look: Look): Cancel {
    this.#waiting.add(look);
    this.#arrange();
    return () => {
      this.#waiting.delete(look);
      if (this.#waiting.size === 0) this.#cancel();
    };
  }

  #arrange(): void {
    if (this.#isTaken || this.#waiting.size === 0) return;
    this.#cancel();
    this.#cancel = after(this.#freeMs - monotonicMs(), () => void this.#next());
  }

  async #next(): Promise<void> {
    const [look] = this.#waiting;
    if (!look) return;
    this.#waiting.delete(look);
    this.#isTaken = true;
    const sinceMs = monotonicMs();
    await look();
    const nowMs = monotonicMs();
    this.#freeMs = nowMs + REST * (nowMs - sinceMs);
    this.#isTaken = false;
    this.#arrange();
  }
}
