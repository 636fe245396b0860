/**
 * Looks of all who watch, one at a time, and after each the store is left alone for four times as long. However many
 * watch however much, looking takes at most a fifth of the time; what there is more of is seen later.
 */
import { after, type Cancel, monotonicMs } from '../clock.js';

const REST = 4;
/** A look in vain took long because the store is away: whoever watches is to know soon that it is back. */
const TROUBLE_REST_MS = 1_000;

/** Never rejects; false: in vain. */
type Look = () => Promise<boolean>;

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
    const isAnswered = await look();
    const nowMs = monotonicMs();
    const restMs = REST * (nowMs - sinceMs);
    this.#freeMs = nowMs + (isAnswered ? restMs : Math.min(restMs, TROUBLE_REST_MS));
    this.#isTaken = false;
    this.#arrange();
  }
}
