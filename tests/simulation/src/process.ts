/**
 * A simulated process: its own clocks over the simulation's time, its timers, and the ways in which processes stop.
 *
 * - paused (SIGSTOP, a blocked event loop): no code runs. On resuming, messages that arrived meanwhile may be handled
 *   before the timers that fell due, as in Node (F1).
 * - suspended (a sleeping machine): paused, and the monotonic clock stands still while the wall clock runs.
 * - crashed: its code never runs again. Messages that it sent still arrive.
 */

import type { Clock, Timer } from './library.js';
import type { RandomSource } from './random-source.js';
import type { Schedule, ScheduledEvent } from './schedule.js';

/** How fast or slow a clock may run against the store's: inside the drift margin of 1 %. */
const DRIFT_SHARE = 0.009;
/** Timers fire a little late, and in Node sometimes a fraction of a millisecond early. */
const TIMER_LATE_MS = 2;
const TIMER_EARLY_SHARE = 0.02;
const TIMER_EARLY_MS = 0.9;

type Phase = 'running' | 'paused' | 'crashed';

class VirtualTimer implements Timer {
  readonly dueMs: number;
  readonly run: () => void;
  event: ScheduledEvent | null = null;
  readonly #timers: Set<VirtualTimer>;

  constructor(dueMs: number, run: () => void, timers: Set<VirtualTimer>) {
    this.dueMs = dueMs;
    this.run = run;
    this.#timers = timers.add(this);
  }

  cancel(): void {
    this.#timers.delete(this);
    this.event?.cancel();
  }

  keepAlive(): void {}
}

export class SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #schedule: Schedule;
  readonly #random: RandomSource;
  readonly #rate: number;
  readonly #timers = new Set<VirtualTimer>();
  readonly #arrived: (() => void)[] = [];
  readonly #due: VirtualTimer[] = [];
  readonly #startMs: number;
  #phase: Phase = 'running';
  #wallOffsetMs: number;
  #frozenMs = 0;
  #pausedAtMs = 0;
  #pausedMs = 0;
  #suspended = false;
  /** Called first after a pause, before any message and any timer. */
  onResume: () => void = () => {};

  constructor(name: string, schedule: Schedule, random: RandomSource, driftShare = DRIFT_SHARE) {
    this.name = name;
    this.#schedule = schedule;
    this.#random = random;
    this.#rate = 1 + random.between(-driftShare, driftShare);
    this.#startMs = schedule.nowMs;
    this.#wallOffsetMs = 1_700_000_000_000 + random.between(-1e8, 1e8);
    this.clock = {
      monotonicMs: () => this.#monotonicMs(),
      wallMs: () => Math.floor(this.#wallOffsetMs + (schedule.nowMs - this.#startMs) * this.#rate),
      timer: (delayMs, run) => this.#timer(delayMs, run),
      afterTurn: (run) => void schedule.after(0, () => this.deliver(run)),
      random: () => random.next(),
      randomId: () => random.id(),
    };
  }

  get phase(): Phase {
    return this.#phase;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** The sum of all pauses, up to now. */
  get pausedMs(): number {
    return this.#pausedMs + (this.#phase === 'paused' ? this.#schedule.nowMs - this.#pausedAtMs : 0);
  }

  /** The sum of all suspensions: its timers are late by this much. */
  get suspendedMs(): number {
    return this.#frozenMs;
  }

  /** A message from outside: handled now, after the pause, or never. */
  deliver(run: () => void): void {
    if (this.#phase === 'running') run();
    else if (this.#phase === 'paused') this.#arrived.push(run);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#timer(delayMs, resolve));
  }

  pause({ suspend }: { readonly suspend: boolean }): void {
    if (this.#phase !== 'running') return;
    this.#phase = 'paused';
    this.#pausedAtMs = this.#schedule.nowMs;
    this.#suspended = suspend;
  }

  resume(): void {
    if (this.#phase !== 'paused') return;
    const pauseMs = this.#schedule.nowMs - this.#pausedAtMs;
    this.#pausedMs += pauseMs;
    if (this.#suspended) this.#frozenMs += pauseMs;
    this.#suspended = false;
    this.#phase = 'running';
    this.onResume();
    const arrivals = this.#arrived.splice(0).map((run) => () => this.deliver(run));
    const timers = this.#due.splice(0).map((timer) => () => this.#fire(timer));
    const order = this.#random.chance(0.5) ? [...arrivals, ...timers] : [...timers, ...arrivals];
    for (const run of order) this.#schedule.after(0, run);
  }

  crash(): void {
    this.#phase = 'crashed';
    for (const timer of this.#timers) timer.cancel();
    this.#arrived.length = 0;
  }

  setWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  #monotonicMs(): number {
    const nowMs = this.#suspended ? this.#pausedAtMs : this.#schedule.nowMs;
    return (nowMs - this.#startMs - this.#frozenMs) * this.#rate;
  }

  #timer(delayMs: number, run: () => void): Timer {
    const random = this.#random;
    const early = delayMs > 1 && random.chance(TIMER_EARLY_SHARE);
    const offMs = early ? -TIMER_EARLY_MS * random.next() : TIMER_LATE_MS * random.next() ** 4;
    const dueMs = this.#monotonicMs() + Math.max(Math.ceil(delayMs), 0) + offMs;
    const timer = new VirtualTimer(dueMs, run, this.#timers);
    this.#arm(timer);
    return timer;
  }

  #arm(timer: VirtualTimer): void {
    const inMs = Math.max((timer.dueMs - this.#monotonicMs()) / this.#rate, 0);
    timer.event = this.#schedule.after(inMs, () => this.#fire(timer));
  }

  #fire(timer: VirtualTimer): void {
    if (this.#phase === 'crashed' || !this.#timers.has(timer)) return;
    if (this.#phase === 'paused') {
      this.#due.push(timer);
    } else if (timer.dueMs - this.#monotonicMs() > 0.01) {
      this.#arm(timer);
    } else {
      this.#timers.delete(timer);
      timer.run();
    }
  }
}
