/** A time in which nothing is done. Ends early with its signal, when the locks are closed, or by `end`. Keeps the process alive. */
import type { Task } from '../timer-queue.js';
import type { Leases } from './leases.js';

export class Pause {
  readonly over: Promise<void>;
  readonly #leases: Leases;
  readonly #signal: AbortSignal | undefined;
  #timer: Task | null = null;
  #resolve: () => void = () => undefined;

  constructor(leases: Leases, ms: number, signal?: AbortSignal) {
    this.#leases = leases;
    this.#signal = signal;
    this.over = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (signal?.aborted || ms <= 0) {
      this.#resolve();
      return;
    }
    const { timers, clock } = leases.client;
    this.#timer = timers.call(clock.monotonicMs() + ms, () => this.end());
    if (signal) leases.aborts.add(signal, this);
  }

  onAbort(): void {
    this.end();
  }

  end(): void {
    if (this.#timer) this.#leases.client.timers.cancel(this.#timer);
    if (this.#signal) this.#leases.aborts.remove(this.#signal, this);
    this.#resolve();
  }
}
