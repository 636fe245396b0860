/**
 * One run per tick, on any number of machines. The time of the tick is part of the key that is locked, `KEY@TIME`, and
 * that lock is never free again while a process may still try to run the tick.
 *
 * 1. The key of the tick is acquired, without waiting. One caller gets it.
 * 2. It is released at once, with a `minHold`: the cool-down belongs to nobody, so it outlives the death of its process.
 * 3. Then the caller reads its clock. If it is too late, it does not run the tick.
 *
 * Only a cool-down proves that the tick was taken. A hold may still be given back, if its caller got no answer. So a
 * process that finds a hold asks again, until it is a cool-down or gone.
 *
 * The cool-down begins when the fastest clock has reached the tick, and lasts for CLOCKS_MS and the lateness allowed. After
 * that every clock, up to CLOCKS_MS behind the fastest, reads a time at which step 3 refuses. So no tick runs twice.
 */
import type { Duration, Locks } from '../api.js';
import { Pause } from '../lease/pause.js';
import { contextOf } from '../locks.js';
import { acquireOne } from '../primitives/single.js';
import type { HolderView } from '../protocol/commands.js';
import { DRIFT_SHARE } from '../protocol/constants.js';
import { durationMs, TTL_MS_MAX } from '../protocol/durations.js';
import { InvalidArgumentError, StoreError } from '../protocol/errors.js';
import { checkKey, show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';

/** How far the clocks of the machines may be apart. */
export const CLOCKS_MS = 30_000;
/** How late a tick may be run, by the clock of the machine that runs it. */
export const LATE_MS = 30_000;
const MUTEX = { permits: 1, capacity: 1 };
/** How long `acquireTick` asks again for a tick that another process is about to take. */
const UNDECIDED_MS = 30_000;
/** The pause before a tick is asked for again, doubling up to `AGAIN_MS_MAX`. */
const AGAIN_MS = 100;
const AGAIN_MS_MAX = 5_000;
/** The longest lateness that the longest cool-down allows. */
export const LATE_MS_MAX = Math.floor(TTL_MS_MAX / (1 + DRIFT_SHARE)) - CLOCKS_MS;

/** Options of `acquireTick`. */
export interface TickOptions {
  /** How long after its time, by this machine's clock, the tick may still be run. The same for all callers. Default 30 s. */
  readonly late?: Duration;
}

/**
 * True for one caller per key and time, on all machines whose clocks are at most 30 s apart: that caller runs the tick.
 * False when another has it, or when it is too late. A caller that dies keeps the tick. Rejects with a `StoreError` when
 * the store does not answer, or when another holds the tick for 30 s without taking it or giving it back.
 */
export async function acquireTick(
  locks: Locks,
  key: string,
  time: Date,
  options: TickOptions = {},
): Promise<boolean> {
  if (!(time instanceof Date) || Number.isNaN(time.getTime())) {
    throw new InvalidArgumentError(`The time of the tick is ${show(time)}, but has to be a Date.`);
  }
  const { late } = checkOptionNames(options, ['late']);
  const lateMs = late === undefined ? LATE_MS : durationMs(late, 'late', 0, LATE_MS_MAX);
  const { leases } = contextOf(locks);
  const { clock } = leases.client;
  const leftMs = time.getTime() + lateMs - clock.wallMs();
  const untilMs = clock.monotonicMs() + Math.min(UNDECIDED_MS, leftMs);
  for (let asked = 0; ; asked++) {
    try {
      return await takeTick(locks, key, time.getTime(), lateMs, 0);
    } catch (error) {
      const pauseMs = againMs(clock.random(), asked);
      if (!(error instanceof UndecidedError) || clock.monotonicMs() + pauseMs >= untilMs) throw error;
      await new Pause(leases, pauseMs).over;
    }
  }
}

/** `random`: from 0 to 1. */
export function againMs(random: number, asked: number): number {
  return Math.min(AGAIN_MS * 2 ** asked, AGAIN_MS_MAX) * (0.5 + random);
}

/** The tick is held, and not yet taken: its holder may take it or give it back. */
class UndecidedError extends StoreError {
  constructor(key: string, holders: readonly HolderView[]) {
    const who = holders.map(({ owner }) => owner).join(', ') || 'an unknown holder';
    const message = `It is unknown whether "${key}" ran: ${who} holds it, possibly after a lost reply of the store.`;
    super(message, { key, operation: 'acquire' });
  }
}

/**
 * `rememberedMs`: how long at least the key shows that the tick was taken. Rejects with a `StoreError` while another
 * process is about to take it.
 */
export async function takeTick(
  locks: Locks,
  key: string,
  tickMs: number,
  lateMs: number,
  rememberedMs: number,
): Promise<boolean> {
  const context = contextOf(locks);
  const { clock } = context.leases.client;
  const aheadMs = tickMs - clock.wallMs();
  if (-aheadMs >= lateMs) return false;
  if (aheadMs > CLOCKS_MS) {
    throw new InvalidArgumentError(
      `The tick ${new Date(tickMs).toISOString()} is in the future: take it when its time has come.`,
    );
  }
  // A timer may fire a little early: then the cool-down begins early, too.
  const earlyMs = Math.max(aheadMs, 0);
  const restMs = Math.max(CLOCKS_MS + lateMs + earlyMs, rememberedMs);
  const ttl = Math.min(Math.ceil(restMs * (1 + DRIFT_SHARE)), TTL_MS_MAX);
  const name = tickKey(key, tickMs);
  const outcome = await acquireOne(context, name, { ttl, minHold: ttl, renew: false }, MUTEX, 0);
  if (outcome.kind === 'busy') {
    if (outcome.holders.some(({ resting }) => resting)) return false;
    throw new UndecidedError(name, outcome.holders);
  }
  try {
    await outcome.lease.release();
  } catch (error) {
    // Even so, no other process gets the tick: the hold lasts as long as the cool-down, and the release is sent again.
    if (!(error instanceof StoreError)) throw error;
  }
  return clock.wallMs() - tickMs < Math.min(lateMs, LATE_MS_MAX - earlyMs);
}

/** The prefix of the keys of all ticks. A schedule whose own key begins with it has such keys, too. */
export const tickPrefix = (key: string): string => `${key}@`;

/** Whether the locked name is that of a tick of this schedule. */
export function isTickOf(key: string, name: string): boolean {
  const time = name.slice(tickPrefix(key).length);
  return name.startsWith(tickPrefix(key)) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time);
}

const tickKey = (key: string, tickMs: number): string => tickPrefix(key) + new Date(tickMs).toISOString();

/** Returns the key in its normal form. Refuses a key that leaves no room for the time. */
export function checkScheduleKey(key: string): string {
  const name = checkKey(key);
  checkKey(tickKey(name, 0));
  return name;
}
