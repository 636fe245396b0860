/**
 * One process's part in a schedule: it waits for the next tick by its wall clock, asks for it (tick-lock.ts), and runs the
 * work under the lock of the schedule.
 *
 * Timers stop while a machine is suspended, so the wall clock is read every CHECK_MS. Ticks that passed meanwhile are asked
 * for, oldest first, while they are less late than LATE_MS; older ones are missed.
 */
import type { DrainOptions, Lease, Locks } from '../api.js';
import { checkSignal } from '../arguments.js';
import { callOrWarn, warn } from '../lease/callback.js';
import { HeldLease } from '../lease/lease.js';
import type { Leases } from '../lease/leases.js';
import { Pause } from '../lease/pause.js';
import { workContext } from '../lease/work-context.js';
import { contextOf, drainMsOf } from '../locks.js';
import { checkWork, runUnder } from '../primitives/with-lock.js';
import { durationMs, TTL_MS_MIN } from '../protocol/durations.js';
import { InvalidArgumentError, StoreError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { AskedTimes } from './asked-times.js';
import {
  againMs,
  CLOCKS_MS,
  checkScheduleKey,
  isTickOf,
  LATE_MS,
  LATE_MS_MAX,
  takeTick,
  tickPrefix,
} from './tick-lock.js';
import { type Ticks, ticksOf, type When } from './ticks.js';
import type { Schedule, ScheduleOptions, Work } from './types.js';

const CHECK_MS = 10_000;
const JITTER_MS_MAX = 3_600_000;
/** How many ticks the store remembers with `run-once`, so that a starting process sees that the schedule ran before. */
const REMEMBERED = 10;
/** Without this limit, the queue of work that always takes longer than the period would grow for ever. */
const QUEUED_MAX = 100;

const OPTION_NAMES = ['timeZone', 'missed', 'overlap', 'jitter', 'maxHold', 'onError', 'signal'];

/** The run of one tick. */
interface Run {
  over: Promise<void>;
  /** Set while its work runs, and afterwards. */
  lease: Lease | null;
}

export class TickSchedule implements Schedule {
  readonly #locks: Locks;
  readonly #leases: Leases;
  readonly #key: string;
  readonly #ticks: Ticks;
  readonly #work: Work;
  readonly #options: ScheduleOptions;
  readonly #jitterMs: number;
  readonly #asked: AskedTimes;
  /** The next tick; null when there is none. */
  #nextMs: number | null;
  readonly #runs = new Set<Run>();
  /** How many ticks wait for the lock. */
  #queued = 0;
  /** Aborted by `stop`: no tick is asked for any more. */
  readonly #stopping = new AbortController();
  /** Aborted when the drain is over: ends all waiting. */
  readonly #ending = new AbortController();
  readonly #ender = { onAbort: (): void => this.#end() };

  constructor(locks: Locks, key: string, when: When, work: Work, options: ScheduleOptions) {
    this.#leases = contextOf(locks).leases;
    this.#leases.checkOpen();
    this.#key = checkScheduleKey(key);
    checkWork(work);
    this.#locks = locks;
    this.#work = work;
    this.#options = checked(options);
    this.#jitterMs = durationMs(options.jitter ?? 0, 'jitter', 0, JITTER_MS_MAX);
    this.#ticks = ticksOf(when, options.timeZone);
    const nowMs = this.#leases.client.clock.wallMs();
    this.#asked = new AskedTimes(nowMs);
    this.#nextMs = this.#ticks.after(nowMs);
    if (this.#nextMs === null)
      throw new InvalidArgumentError(`The schedule ${show(when)} has no future time: it would never run.`);
    for (const signal of this.#endedBy()) this.#leases.aborts.add(signal, this.#ender);
    if (options.signal?.aborted) this.#end();
    // A schedule made inside of work is not a part of that work, and continues after it.
    workContext.exit(() => {
      if (options.missed === 'run-once') this.#start(nowMs, (run) => this.#catchUp(nowMs, run));
      void this.#wait();
    });
  }

  get next(): Date | null {
    return this.#nextMs === null || this.#isOver ? null : new Date(this.#nextMs);
  }

  async stop(options?: DrainOptions): Promise<void> {
    const drainMs = drainMsOf(options);
    this.#end();
    // Work that stops its own schedule would wait for itself.
    const callers = new Set<Lease | null>(workContext.getStore());
    const others = [...this.#runs].filter(({ lease }) => !callers.has(lease));
    const pause = new Pause(this.#leases, drainMs);
    void Promise.all(others.map((run) => run.over)).then(() => pause.end());
    await pause.over;
    this.#ending.abort();
    const message = 'the schedule was stopped before the work had ended';
    const held = others.flatMap(({ lease }) => (lease instanceof HeldLease ? lease : []));
    await Promise.all(held.map((lease) => HeldLease.revoke(lease, { reason: 'closed', message })));
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted || this.#leases.isClosed;
  }

  #end(): void {
    for (const signal of this.#endedBy()) this.#leases.aborts.remove(signal, this.#ender);
    this.#stopping.abort();
  }

  #endedBy(): readonly AbortSignal[] {
    const { signal } = this.#options;
    return signal ? [signal, this.#leases.closing] : [this.#leases.closing];
  }

  async #wait(): Promise<void> {
    const { clock } = this.#leases.client;
    while (this.#nextMs !== null && !this.#isOver) {
      const waitMs = Math.max(this.#nextMs - clock.wallMs(), 1);
      await this.#pause(Math.min(waitMs, CHECK_MS), this.#stopping.signal);
      const nowMs = clock.wallMs();
      if (this.#asked.isSetBack(nowMs)) this.#nextMs = this.#ticks.after(nowMs);
      else if (!this.#isOver && nowMs >= this.#nextMs) this.#startDue(nowMs);
    }
    // The last tick of all. Its signal may live as long as the process, and would keep every schedule that ever ran.
    await Promise.all([...this.#runs].map((run) => run.over));
    this.#end();
  }

  #startDue(nowMs: number): void {
    const doneMs = this.#asked.toMs;
    const fromMs = Math.max(doneMs, nowMs - LATE_MS);
    let tickMs = this.#ticks.after(fromMs);
    if (this.#options.missed === 'run-once' && (tickMs === null || tickMs > nowMs)) {
      const missedMs = this.#ticks.upTo(nowMs);
      if (missedMs !== null && missedMs > doneMs) this.#ask(missedMs);
    }
    for (; tickMs !== null && tickMs <= nowMs; tickMs = this.#ticks.after(tickMs)) this.#ask(tickMs);
    const isMissed = this.#nextMs !== null && this.#nextMs <= fromMs;
    this.#asked.add(isMissed ? fromMs : doneMs, nowMs);
    this.#nextMs = this.#ticks.after(nowMs);
  }

  #ask(tickMs: number): void {
    if (!this.#asked.has(tickMs)) this.#start(tickMs, (run) => this.#tick(tickMs, run));
  }

  #start(tickMs: number, step: (run: Run) => Promise<void>): void {
    const run: Run = { over: Promise.resolve(), lease: null };
    this.#runs.add(run);
    run.over = step(run)
      .catch((error: unknown) => this.#report(error, tickMs))
      .finally(() => this.#runs.delete(run));
  }

  async #tick(tickMs: number, run: Run): Promise<void> {
    const { clock } = this.#leases.client;
    if (this.#jitterMs > 0) await this.#pause(clock.random() * this.#jitterMs, this.#stopping.signal);
    if (this.#queued >= QUEUED_MAX) return;
    const { lateMs, rememberedMs } = this.#limitsOf(tickMs);
    const isOurs = await this.#insist(tickMs + lateMs, this.#stopping.signal, () =>
      takeTick(this.#locks, this.#key, tickMs, lateMs, rememberedMs),
    );
    if (isOurs) await this.#run(tickMs, tickMs + lateMs, run);
  }

  /** With `run-once`, a missed tick may run until the next one is due. */
  #limitsOf(tickMs: number): { readonly lateMs: number; readonly rememberedMs: number } {
    const lateMs = LATE_MS + this.#jitterMs;
    if (this.#options.missed !== 'run-once') return { lateMs, rememberedMs: 0 };
    const nextMs = this.#ticks.after(tickMs);
    const periodMs = nextMs === null ? LATE_MS_MAX : nextMs - tickMs;
    return {
      lateMs: Math.min(lateMs + periodMs, LATE_MS_MAX),
      rememberedMs: REMEMBERED * periodMs + CLOCKS_MS,
    };
  }

  async #run(tickMs: number, untilMs: number, run: Run): Promise<void> {
    const { signal } = this.#ending;
    this.#queued += 1;
    const lease = await this.#insist(untilMs, signal, this.#acquiring(signal)).finally(() => {
      this.#queued -= 1;
    });
    if (!lease) return;
    run.lease = lease;
    // The lease was granted at the moment of `stop`, which has not seen it.
    if (signal.aborted) {
      await lease.release();
      return;
    }
    await runUnder(lease, (held) => this.#work(held, new Date(tickMs)));
  }

  /** After a lost answer, the lock may be held by our own claim, which is soon given back. That is no overlap. */
  #acquiring(signal: AbortSignal): () => Promise<Lease | null> {
    const { maxHold, overlap } = this.#options;
    const wait = overlap === 'queue' ? Number.POSITIVE_INFINITY : 0;
    const options = { wait, signal, ...(maxHold !== undefined && { maxHold }) };
    let unanswered: StoreError | null = null;
    return async () => {
      try {
        const lease = await this.#locks.tryAcquire(this.#key, options);
        if (lease || !unanswered) return lease;
      } catch (error) {
        if (error instanceof StoreError && error.outcome === 'unknown') unanswered = error;
        throw error;
      }
      throw unanswered;
    };
  }

  /**
   * A process that starts runs the last tick if it was missed. An earlier tick that the store still remembers shows that
   * the schedule is not new, and that the last tick was missed.
   */
  async #catchUp(nowMs: number, run: Run): Promise<void> {
    const tickMs = this.#ticks.upTo(nowMs);
    if (tickMs === null) return;
    const { lateMs } = this.#limitsOf(tickMs);
    const ranBefore = await this.#insist(tickMs + lateMs, this.#stopping.signal, async () => {
      for await (const { key } of this.#locks.list({ prefix: tickPrefix(this.#key) }))
        if (isTickOf(this.#key, key)) return true;
      return false;
    });
    if (ranBefore) await this.#tick(tickMs, run);
  }

  /** Repeats a call while the store fails, until this time. Null when the signal aborts, or the locks are closed. */
  async #insist<T>(untilMs: number, signal: AbortSignal, ask: () => Promise<T>): Promise<T | null> {
    const { clock } = this.#leases.client;
    for (let asked = 0; ; asked++) {
      if (signal.aborted || this.#leases.isClosed) return null;
      try {
        return await ask();
      } catch (error) {
        if (signal.aborted || this.#leases.isClosed) return null;
        const pauseMs = againMs(clock.random(), asked);
        if (!(error instanceof StoreError) || clock.wallMs() + pauseMs >= untilMs) throw error;
        await this.#pause(pauseMs, signal);
      }
    }
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Pause(this.#leases, ms, signal).over;
  }

  #report(error: unknown, tickMs: number): void {
    const tick = new Date(tickMs);
    const { onError } = this.#options;
    if (!onError) {
      warn(`The work of the schedule "${this.#key}" failed at ${tick.toISOString()}`, error);
      return;
    }
    callOrWarn(() => onError(error, tick), `onError of the schedule "${this.#key}" threw`);
  }
}

function checked(options: ScheduleOptions): ScheduleOptions {
  const { timeZone, missed, overlap, maxHold, onError, signal } = checkOptionNames(options, OPTION_NAMES);
  oneOf('missed', missed, ['skip', 'run-once']);
  oneOf('overlap', overlap, ['skip', 'queue']);
  if (maxHold !== undefined) durationMs(maxHold, 'maxHold', TTL_MS_MIN, Number.POSITIVE_INFINITY);
  if (timeZone !== undefined && (typeof timeZone !== 'string' || timeZone === '')) {
    throw new InvalidArgumentError(
      `timeZone is ${show(timeZone)}, but has to be a name such as 'Europe/Berlin'. Leave it out for UTC.`,
    );
  }
  if (onError !== undefined && typeof onError !== 'function')
    throw new InvalidArgumentError('onError has to be a function.');
  checkSignal(signal);
  return options;
}

function oneOf(name: string, value: string | undefined, known: readonly string[]): void {
  if (value === undefined || known.includes(value)) return;
  throw new InvalidArgumentError(`${name} is ${show(value)}, but has to be '${known.join("' or '")}'.`);
}
