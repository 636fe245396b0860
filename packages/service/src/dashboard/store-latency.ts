/** The store's response times for its last 100 calls. */
import type { ServiceEvents } from '../service-events.js';

const CALLS = 100;

export class StoreLatency {
  readonly #durationsMs: number[] = [];

  constructor(events: ServiceEvents) {
    events.on('store', ({ operation, ok, durationMs }) => {
      // The time of a list depends on the number of locks, so lists do not count.
      if (!ok || operation === 'list') return;
      this.#durationsMs.push(durationMs);
      if (this.#durationsMs.length > CALLS) this.#durationsMs.shift();
    });
  }

  /** In milliseconds, with one decimal; null before the first call. */
  get median(): number | null {
    const sorted = this.#durationsMs.toSorted((a, b) => a - b);
    const middle = sorted[sorted.length >> 1];
    return middle === undefined ? null : Math.round(middle * 10) / 10;
  }
}
