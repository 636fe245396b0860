/**
 * One run per tick, on however many machines. The time of the tick is part of the key that is locked, `KEY@TIME`, and that
 * lock is never free again while anybody may still try to run the tick.
 *
 * 1. The key of the tick is acquired, without waiting. One caller gets it.
 * 2. It is released at once, with a `minHold`: the cool-down belongs to nobody, so it outlives the death of its process.
 * 3. Then the caller reads its clock. Later than allowed, it does not run.
 *
 * The cool-down begins when the fastest clock has reached the tick, and lasts for CLOCKS_MS and the lateness allowed. After
 * that every clock, up to CLOCKS_MS behind the fastest, reads a time at which step 3 refuses. So no tick runs twice.
 */
import type { Duration, Locks } from '../api.js';
import { checkOptions } from '../arguments.js';
import { contextOf } from '../locks.js';
import { DRIFT_SHARE } from '../protocol/constants.js';
import { durationMs, TTL_MS_MAX } from '../protocol/durations.js';
import { InvalidArgumentError, StoreError } from '../protocol/errors.js';
import { checkKey, show } from '../protocol/names.js';

/** How far the clocks of the machines may be apart. */
export const CLOCKS_MS = 30_000;
/** How late a tick may be run, by the clock of the machine that runs it. */
export const LATE_MS = 30_000;
/** The longest cool-down allows no more. */
export const LATE_MS_MAX = Math.floor(TTL_MS_MAX / (1 + DRIFT_SHARE)) - CLOCKS_MS;

export interface TickOptions {
  /** How long after its time, by this machine's clock, the tick may still be run. The same for all callers. Default 30 s. */
  readonly late?: Duration;
}

/**
 * True for one caller per key and time, on all machines whose clocks are at most 30 s apart: that one runs the tick. False
 * when another has it, or when it is too late. A caller that dies afterwards does not give it back.
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
  const { late } = checkOptions(options, ['late']);
  const lateMs = late === undefined ? LATE_MS : durationMs(late, 'late', 0, LATE_MS_MAX);
  return takeTick(locks, key, time.getTime(), lateMs, 0);
}

/** `rememberedMs`: how long at least the key tells that the tick was taken. */
export async function takeTick(
  locks: Locks,
  key: string,
  tickMs: number,
  lateMs: number,
  rememberedMs: number,
): Promise<boolean> {
  const { clock } = contextOf(locks).leases.client;
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
  const lease = await locks.tryAcquire(tickKey(key, tickMs), { ttl, minHold: ttl, renew: false });
  if (!lease) return false;
  try {
    await lease.release();
  } catch (error) {
    // Nobody else can have it all the same: as a hold it would last as long as the cool-down, which is tried again.
    if (!(error instanceof StoreError)) throw error;
  }
  return clock.wallMs() - tickMs < Math.min(lateMs, LATE_MS_MAX - earlyMs);
}

/** The keys of all ticks of a schedule begin so. */
export const tickPrefix = (key: string): string => `${key}@`;

const tickKey = (key: string, tickMs: number): string => tickPrefix(key) + new Date(tickMs).toISOString();

/** Refuses a key that leaves no room for the time. */
export function checkScheduleKey(key: string): void {
  checkKey(key);
  checkKey(tickKey(key, 0));
}
