/**
 * Looks once a second whether the wall clock and the monotonic one still go together. When a machine wakes from sleep,
 * or its wall clock was set, they do not; then every hold is asked whether it is over, so that its signal aborts now
 * and not when a timer that slept too comes round (F1, F11).
 */
import type { Appointment } from './agenda.js';
import type { Core } from './core.js';

const LOOK_MS = 1_000;
/** More than clocks drift apart in a second, less than any ttl's margin cares for. */
const APART_MS = 20;

export class ClockWatch implements Appointment {
  index = -1;
  readonly #core: Core;
  #apartMs = 0;

  constructor(core: Core) {
    this.#core = core;
  }

  /** While there are holds it goes on by itself. */
  start(): void {
    if (this.index !== -1) return;
    const { agenda, clock } = this.#core;
    const nowMs = clock.monotonicMs();
    this.#apartMs = clock.wallMs() - nowMs;
    agenda.schedule(this, nowMs + LOOK_MS);
  }

  onDue(): void {
    const { clock } = this.#core;
    const apartMs = clock.wallMs() - clock.monotonicMs();
    if (Math.abs(apartMs - this.#apartMs) > APART_MS) this.#core.checkHolds();
    if (this.#core.holdsAlive > 0) this.start();
  }
}
