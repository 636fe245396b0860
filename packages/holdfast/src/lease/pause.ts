/** A pause. Ends early by its signal, by `end`, or when the locks are closed. Keeps the process alive. */
import type { AbortListeners } from '../queue/abort-listeners.js';
import type { StoreClient } from '../store-client/store-client.js';
import type { Task } from '../timer-queue.js';

interface PauseOwner {
  readonly client: StoreClient;
  readonly aborts: AbortListeners;
}

export class Pause {
  readonly over: Promise<void>;
  readonly #owner: PauseOwner;
  readonly #signal: AbortSignal | undefined;
  #timer: Task | null = null;
  #resolve: () => void = () => undefined;

  constructor(owner: PauseOwner, ms: number, signal?: AbortSignal) {
    this.#owner = owner;
    this.#signal = signal;
    this.over = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (signal?.aborted || ms <= 0) {
      this.#resolve();
      return;
    }
    const { timers, clock } = owner.client;
    this.#timer = timers.call(clock.monotonicMs() + ms, () => this.end());
    if (signal) owner.aborts.add(signal, this);
  }

  onAbort(): void {
    this.end();
  }

  end(): void {
    if (this.#timer) this.#owner.client.timers.cancel(this.#timer);
    if (this.#signal) this.#owner.aborts.remove(this.#signal, this);
    this.#resolve();
  }
}
