/**
 * Runs the reads of all watches one at a time, with a pause of four times the read's duration after each. With any number
 * of watches, reading uses at most a fifth of the time; with more to read, changes are seen later. There is no pause after
 * the first read for a watcher, which costs as much as a list.
 */
import { after, type Cancel, monotonicMs } from '../clock.js';

const PAUSE_FACTOR = 4;
/** After a failed read the pause is short, so that watchers see soon that the store is back. */
const FAILED_PAUSE_MS_MAX = 1_000;

/** Never rejects. */
type Read = () => Promise<ReadResult>;
export type ReadResult = 'first' | 'answered' | 'failed';

export class ReadScheduler {
  readonly #waiting = new Set<Read>();
  #isRunning = false;
  #freeMs = 0;
  #cancel: Cancel = () => undefined;

  /** Runs the read later, unless cancelled by the function returned. */
  schedule(read: Read): Cancel {
    this.#waiting.add(read);
    this.#arm();
    return () => {
      this.#waiting.delete(read);
      if (this.#waiting.size === 0) this.#cancel();
    };
  }

  #arm(): void {
    if (this.#isRunning || this.#waiting.size === 0) return;
    this.#cancel();
    this.#cancel = after(this.#freeMs - monotonicMs(), () => void this.#next());
  }

  async #next(): Promise<void> {
    const [read] = this.#waiting;
    if (!read) return;
    this.#waiting.delete(read);
    this.#isRunning = true;
    const sinceMs = monotonicMs();
    const result = await read();
    const nowMs = monotonicMs();
    const pauseMs = PAUSE_FACTOR * (nowMs - sinceMs);
    const pauses = { first: 0, answered: pauseMs, failed: Math.min(pauseMs, FAILED_PAUSE_MS_MAX) };
    this.#freeMs = nowMs + pauses[result];
    this.#isRunning = false;
    this.#arm();
  }
}
