/**
 * Whether the service is ready: the store answers, and the service is not closing. Every answer of the store counts; a
 * separate read is made only when the last answer is too old. `/readyz` is public, so it must cost the store next to
 * nothing.
 */
import { UnsupportedError } from 'holdfast';
import { monotonicMs } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import type { ServiceClient } from '../waiting/service-client.js';

/** A key that nobody uses: reading it is cheap, and reaches the store. */
const UNUSED_KEY = 'holdfast/readyz';
/** The same for layouts of other software without namespaces, which have only the namespace `default`. */
const UNUSED_DEFAULT_KEY = 'default/holdfast-readyz';
/** How long a failure counts. */
const FAILED_MS = 1_000;

export class Readiness {
  readonly #client: ServiceClient;
  readonly #readyMs: number;
  #key = UNUSED_KEY;
  #isDraining = false;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #failure: { readonly error: unknown; readonly atMs: number } | null = null;
  #reading: Promise<void> | null = null;

  constructor(client: ServiceClient, events: ServiceEvents, readyMs: number) {
    this.#client = client;
    this.#readyMs = readyMs;
    events.on('store', ({ ok }) => {
      this.#answeredMs = ok ? monotonicMs() : Number.NEGATIVE_INFINITY;
    });
  }

  /** True when the service has started to close: load balancers then use other instances. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Rejects when the store does not answer, or has to be set up first. */
  async check(): Promise<void> {
    const nowMs = monotonicMs();
    if (nowMs - this.#answeredMs < this.#readyMs) return;
    if (this.#failure && nowMs - this.#failure.atMs < FAILED_MS) throw this.#failure.error;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    await this.#reading;
  }

  async #read(): Promise<void> {
    try {
      await this.#readUnused();
      this.#failure = null;
    } catch (error) {
      this.#failure = { error, atMs: monotonicMs() };
      throw error;
    }
  }
  async #readUnused(): Promise<void> {
    try {
      await this.#client.read(this.#key);
    } catch (error) {
      if (!(error instanceof UnsupportedError) || this.#key === UNUSED_DEFAULT_KEY) throw error;
      await this.#client.read(UNUSED_DEFAULT_KEY);
      this.#key = UNUSED_DEFAULT_KEY;
    }
  }
}
