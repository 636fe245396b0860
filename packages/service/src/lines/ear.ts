/**
 * The one inbox of this process: hints for all that stand in a line for it. Hints are a help, not a need: a store that
 * cannot be listened to now is asked again later, and meanwhile waiters ask more often.
 */
import type { Store } from 'holdfast';
import type { Stop, Why } from 'holdfast/protocol';
import { monotonicMs, randomId, within } from '../clock.js';

const LISTEN_AGAIN_MS = 5_000;
const CLOSE_MS_MAX = 2_000;

export interface Listeners {
  /** It may be this key's turn. */
  onTurn(key: string): void;
  /** Hints may have been missed, or the pace of asking changes: everybody asks at once. */
  onAll(): void;
}

export class Ear {
  readonly inbox: string | null;
  readonly #store: Store;
  readonly #listeners: Listeners;
  #listening: Promise<Stop | null> | null = null;
  #established = false;
  #hearing = true;
  #againMs = 0;

  constructor(store: Store, listeners: Listeners) {
    this.#store = store;
    this.#listeners = listeners;
    this.inbox = store.listen ? randomId() : null;
  }

  /** Whether the store keeps waiters in line and calls them, and this process hears it, as far as it knows (F32). */
  get callsWaiters(): boolean {
    const { queue, push } = this.#store.traits;
    return queue && push && this.#established && this.#hearing;
  }

  listen(): void {
    const { inbox } = this;
    if (this.#listening || inbox === null || monotonicMs() < this.#againMs) return;
    this.#listening = this.#begin(inbox).catch(() => {
      this.#listening = null;
      this.#againMs = monotonicMs() + LISTEN_AGAIN_MS;
      return null;
    });
  }

  async close(withinMs: number): Promise<void> {
    const stopped = this.#listening?.then((stop) => stop?.());
    // A store that hangs, or is away, keeps nobody from closing.
    await within(Math.min(withinMs, CLOSE_MS_MAX), Promise.allSettled([stopped]), undefined);
  }

  /** Rejects, however the store fails: whoever is about to ask it goes on. */
  async #begin(inbox: string): Promise<Stop | null> {
    const wake = (key: string, why: Why): void => {
      if (why === 'turn') this.#listeners.onTurn(key);
    };
    const stop = await this.#store.listen?.(inbox, wake, (hearing) => this.#hears(hearing));
    this.#established = true;
    // Whoever stood in line before may have been called already, with nobody there to hear it.
    this.#listeners.onAll();
    return stop ?? null;
  }

  #hears(hearing: boolean): void {
    if (hearing === this.#hearing) return;
    this.#hearing = hearing;
    this.#listeners.onAll();
  }
}
