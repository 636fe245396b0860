/**
 * The inbox of this process: wake-ups for all its waiters and holders. Wake-ups are helpful, not necessary: if listening
 * fails, it is tried again later, and meanwhile waiters poll more often.
 */
import type { Clock } from '../clock.js';
import type { Why } from '../protocol/commands.js';
import type { Stop, Store } from '../protocol/store.js';

/** The pause before listening is tried again after it failed. */
const LISTEN_AGAIN_MS = 1_000;

export interface WakeReceiver {
  onWake(key: string, why: Why): void;
  /** Wake-ups may have been missed, or the pace of polling changes: all waiters claim at once. */
  onWakeAll(): void;
}

export class WakeListener {
  /** Where wake-ups for this process go. Random, and never part of a hold: inbox names may be seen. */
  readonly inbox: string | null;
  receiver: WakeReceiver | null = null;
  readonly #store: Store;
  readonly #clock: Clock;
  /** Whether it listens, or is about to. */
  isStarted = false;
  #stop: Promise<Stop | null> = Promise.resolve(null);
  #againMs = Number.NEGATIVE_INFINITY;
  #listening = true;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.inbox = store.listen ? clock.randomId() : null;
  }

  /** Whether the store queues waiters and wakes them, and wake-ups arrive here as far as this process knows (F32). */
  wakesWaiters(): boolean {
    const { queue, push } = this.#store.traits;
    if (!queue || !push) return false;
    this.start();
    return this.isStarted && this.#listening;
  }

  start(): void {
    if (this.isStarted || this.inbox === null || this.#clock.monotonicMs() < this.#againMs) return;
    this.isStarted = true;
    this.#stop = this.#listen(this.inbox).catch(() => {
      this.isStarted = false;
      this.#againMs = this.#clock.monotonicMs() + LISTEN_AGAIN_MS;
      return null;
    });
  }

  async stop(): Promise<void> {
    const stop = await this.#stop;
    await stop?.();
  }

  /** Rejects instead of throwing when the store throws, so that a caller that is about to send a command goes on. */
  async #listen(inbox: string): Promise<Stop | null> {
    const stop = await this.#store.listen?.(
      inbox,
      (key, why) => this.receiver?.onWake(key, why),
      (isListening) => this.#changed(isListening),
    );
    // A waiter that queued before may have been woken already, while nobody listened.
    this.receiver?.onWakeAll();
    return stop ?? null;
  }

  #changed(isListening: boolean): void {
    if (isListening === this.#listening) return;
    this.#listening = isListening;
    this.receiver?.onWakeAll();
  }
}
