/** A call whose answer is shared by all callers that come while it is pending. */
import { type Clock, systemClock } from '../../clock.js';
import { ATTEMPT_MS } from '../../protocol/index.js';

export class SharedCall<T> {
  readonly #call: () => Promise<T>;
  readonly #clock: Clock;
  #pending: Promise<T> | null = null;
  #sentMs = 0;

  constructor(call: () => Promise<T>, clock: Clock = systemClock) {
    this.#call = call;
    this.#clock = clock;
  }

  /** Shares a pending call for `ATTEMPT_MS` only: its answer may be lost, and must not block later callers. */
  run(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#pending && nowMs - this.#sentMs < ATTEMPT_MS) return this.#pending;
    const pending = this.#call().finally(() => {
      if (this.#pending === pending) this.#pending = null;
    });
    this.#pending = pending;
    this.#sentMs = nowMs;
    return pending;
  }
}
