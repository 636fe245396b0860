/**
 * Compares the wall clock and the monotonic one, once a second while there are holds. The clocks go apart when a machine
 * wakes from sleep, or when its wall clock is set. Then every hold is checked, so that its signal aborts now, not when a
 * timer that slept, too, is due (F1, F11).
 */
import type { StoreClient } from '../store-client/store-client.js';
import type { Task } from '../timer-queue.js';

const COMPARE_MS = 1_000;
/** More than clocks drift apart in a second, less than any ttl's margin. */
const APART_MS = 20;

export class ClockWatch implements Task {
  index = -1;
  /** The number of holds of this process. */
  holds = 0;
  readonly #client: StoreClient;
  readonly #onApart: () => void;
  #differenceMs = 0;

  constructor(client: StoreClient, onApart: () => void) {
    this.#client = client;
    this.#onApart = onApart;
  }

  start(): void {
    const { timers, clock } = this.#client;
    const nowMs = clock.monotonicMs();
    this.#differenceMs = clock.wallMs() - nowMs;
    timers.schedule(this, nowMs + COMPARE_MS);
  }

  onDue(): void {
    const { clock } = this.#client;
    const differenceMs = clock.wallMs() - clock.monotonicMs();
    if (Math.abs(differenceMs - this.#differenceMs) > APART_MS) this.#onApart();
    if (this.holds > 0) this.start();
  }
}
