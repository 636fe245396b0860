/** A question that many have at the same time, put once. */
import type { Clock } from '../../clock.js';
import { ATTEMPT_MS } from '../../protocol/index.js';

export class Question<T> {
  readonly #ask: () => Promise<T>;
  readonly #clock: Clock;
  #asking: Promise<T> | null = null;
  #askedMs = 0;

  constructor(ask: () => Promise<T>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /** Shares the answer that is under way, but not one that may be lost: that holds up nobody who comes later. */
  put(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#asking && nowMs - this.#askedMs < ATTEMPT_MS) return this.#asking;
    const asking = this.#ask().finally(() => {
      if (this.#asking === asking) this.#asking = null;
    });
    this.#asking = asking;
    this.#askedMs = nowMs;
    return asking;
  }
}
