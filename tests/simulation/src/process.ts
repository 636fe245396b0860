/**
 * A simulated process: clocks of its own over the world's time, timers, and the ways in which processes stop.
 *
 * - paused (SIGSTOP, a blocked loop): nothing of it runs. On resuming, what arrived meanwhile may come before the
 *   timers that fell due, as it does in Node (F1).
 * - suspended (a sleeping machine): paused, and the monotonic clock stands still while the wall clock goes on.
 * - crashed: nothing of it ever runs again. What it has sent still arrives.
 */

import type { Dice } from './dice.js';
import type { Clock, Timer } from './library.js';
import type { Appointment, Schedule } from './schedule.js';

/** How far a clock may run fast or slow against the store's: inside the drift margin of 1 %. */
const DRIFT_SHARE = 0.009;
/** Timers come late by a little, and in Node now and then a fraction of a millisecond early. */
const TIMER_LATE_MS = 2;
const TIMER_EARLY_SHARE = 0.02;
const TIMER_EARLY_MS = 0.9;

type Phase = 'running' | 'paused' | 'crashed';

class VirtualTimer implements Timer {
  readonly dueMs: number;
  readonly run: () => void;
  appointment: Appointment | null = null;
  readonly #timers: Set<VirtualTimer>;

  constructor(dueMs: number, run: () => void, timers: Set<VirtualTimer>) {
    this.dueMs = dueMs;
    this.run = run;
    this.#timers = timers.add(this);
  }

  cancel(): void {
    this.#timers.delete(this);
    this.appointment?.cancel();
  }

  keepAlive(): void {}
}

export class SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #schedule: Schedule;
  readonly #dice: Dice;
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
  /** Run first thing after a pause, before any arrival and any timer. */
  onResume: () => void = () => {};

  constructor(name: string, schedule: Schedule, dice: Dice) {
    this.name = name;
    this.#schedule = schedule;
    this.#dice = dice;
    this.#rate = 1 + dice.between(-DRIFT_SHARE, DRIFT_SHARE);
    this.#startMs = schedule.nowMs;
    this.#wallOffsetMs = 1_700_000_000_000 + dice.between(-1e8, 1e8);
    this.clock = {
      monotonicMs: () => this.#monotonicMs(),
      wallMs: () => Math.floor(this.#wallOffsetMs + (schedule.nowMs - this.#startMs) * this.#rate),
      timer: (delayMs, run) => this.#timer(delayMs, run),
      afterTurn: (run) => void schedule.at(schedule.nowMs, () => this.deliver(run)),
      random: () => dice.next(),
      randomId: () => dice.id(),
    };
  }

  get phase(): Phase {
    return this.#phase;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** How long it has been paused in all, up to now. */
  get pausedMs(): number {
    return this.#pausedMs + (this.#phase === 'paused' ? this.#schedule.nowMs - this.#pausedAtMs : 0);
  }

  /** How long its machine was suspended in all: its timers are late by so much. */
  get suspendedMs(): number {
    return this.#frozenMs;
  }

  /** Something from outside reaches it: now, after its pause, or never. */
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
    const order = this.#dice.chance(0.5) ? [...arrivals, ...timers] : [...timers, ...arrivals];
    for (const run of order) this.#schedule.at(this.#schedule.nowMs, run);
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
    const dice = this.#dice;
    const early = delayMs > 1 && dice.chance(TIMER_EARLY_SHARE);
    const offMs = early ? -TIMER_EARLY_MS * dice.next() : TIMER_LATE_MS * dice.next() ** 4;
    const dueMs = this.#monotonicMs() + Math.max(Math.ceil(delayMs), 0) + offMs;
    const timer = new VirtualTimer(dueMs, run, this.#timers);
    this.#arm(timer);
    return timer;
  }

  #arm(timer: VirtualTimer): void {
    const inMs = Math.max((timer.dueMs - this.#monotonicMs()) / this.#rate, 0);
    timer.appointment = this.#schedule.at(this.#schedule.nowMs + inMs, () => this.#fire(timer));
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
