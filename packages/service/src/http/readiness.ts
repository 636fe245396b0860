/**
 * Whether the service may be sent work: whether the store answers, and nobody has begun to close. Every answer of the
 * store counts, whoever asked for it; the store is asked for this alone only when the last one is too old. Anybody may
 * ask for `/readyz` as often as they like: that must cost the store next to nothing.
 */
import type { Bulletin } from '../bulletin.js';
import { monotonicMs } from '../clock.js';
import type { Desk } from '../lines/desk.js';

/** A key that nobody has: a read of it costs next to nothing, and asks the store all the same. */
const NOBODYS_KEY = 'holdfast/readyz';
/** How long a failure counts. */
const FAILED_MS = 1_000;

export class Readiness {
  readonly #desk: Desk;
  readonly #readyMs: number;
  #isDraining = false;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #failure: { readonly error: unknown; readonly atMs: number } | null = null;
  #asking: Promise<void> | null = null;

  constructor(desk: Desk, bulletin: Bulletin, readyMs: number) {
    this.#desk = desk;
    this.#readyMs = readyMs;
    bulletin.on('store', ({ ok }) => {
      this.#answeredMs = ok ? monotonicMs() : Number.NEGATIVE_INFINITY;
    });
  }

  /** True from the moment that the service begins to end: load balancers send their requests elsewhere then. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Rejects when the store does not answer, or cannot be used as it is. */
  async check(): Promise<void> {
    const nowMs = monotonicMs();
    if (nowMs - this.#answeredMs < this.#readyMs) return;
    if (this.#failure && nowMs - this.#failure.atMs < FAILED_MS) throw this.#failure.error;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    await this.#asking;
  }

  async #ask(): Promise<void> {
    try {
      await this.#desk.read(NOBODYS_KEY);
      this.#failure = null;
    } catch (error) {
      this.#failure = { error, atMs: monotonicMs() };
      throw error;
    }
  }
}
