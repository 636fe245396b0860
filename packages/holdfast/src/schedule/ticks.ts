/**
 * The times of a schedule's ticks, the same on every machine: since the epoch, or by a cron expression in one time zone.
 */
import { createRequire } from 'node:module';
import type { Duration } from '../api.js';
import { durationMs } from '../protocol/durations.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { isError } from '../protocol/is-error.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { ZoneClock } from './zone-clock.js';

/** A cron expression, or a period whose ticks are its multiples since 1970-01-01T00:00Z. */
export type When = string | { readonly every: Duration };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const EVERY_MS_MIN = 100;
const EVERY_MS_MAX = 366 * DAY_MS;
/** How far back the last tick is searched: 1 s, doubled this many times, is two years. */
const DOUBLINGS = 26;

/** Milliseconds since the epoch. */
export interface Ticks {
  /** The first tick after this time; null when there is none. */
  after(ms: number): number | null;
  /** The last tick up to this time; null when there is none. */
  upTo(ms: number): number | null;
}

/** The part of croner that is used. */
interface Cron {
  nextRun(after: Date): Date | null;
}

interface Croner {
  readonly Cron: new (
    expression: string,
    options: { readonly timezone: string; readonly paused: boolean },
  ) => Cron;
}

export function ticksOf(when: When, timeZone: string | undefined): Ticks {
  if (typeof when === 'string') return cronTicks(when, timeZone ?? 'UTC');
  if (typeof when !== 'object' || when === null) {
    throw new InvalidArgumentError(
      `The schedule is ${show(when)}, but has to be a cron expression such as '0 3 * * *', or a period such as { every: '5m' }.`,
    );
  }
  if (timeZone !== undefined) {
    throw new InvalidArgumentError('timeZone belongs to a cron expression: { every } counts from the epoch.');
  }
  const { every } = checkOptionNames(when, ['every']);
  return periodicTicks(durationMs(every, 'every', EVERY_MS_MIN, EVERY_MS_MAX));
}

function periodicTicks(everyMs: number): Ticks {
  const upTo = (ms: number): number => Math.floor(ms / everyMs) * everyMs;
  return { upTo, after: (ms) => upTo(ms) + everyMs };
}

/**
 * When clocks go forward or back, an expression for every hour follows the hours that pass. Any other expression names
 * times of the day, and each of these has one tick.
 */
function cronTicks(expression: string, timeZone: string): Ticks {
  const { Cron } = loadCroner();
  checkTimeZone(timeZone);
  const nextBy = (zone: string): Ticks['after'] => {
    const cron = new Cron(expression, { timezone: zone, paused: true });
    return (ms) => cron.nextRun(new Date(ms))?.getTime() ?? null;
  };
  try {
    const next = nextBy(timeZone);
    // Computes one time, because some mistakes show only then.
    next(0);
    const after =
      isOneDate(expression) || isEveryHour(nextBy('UTC')) ? next : oncePerTime(nextBy('UTC'), timeZone);
    return { after, upTo: (ms) => lastUpTo(ms, after) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`The cron expression ${show(expression)} is invalid: ${why}`, {
      cause,
    });
  }
}

function checkTimeZone(timeZone: string): void {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone });
  } catch (cause) {
    throw new InvalidArgumentError(
      `timeZone is ${show(timeZone)}, but has to be the name of a time zone, such as 'Europe/Berlin'.`,
      { cause },
    );
  }
}

/** Whether it is a date such as 2027-01-01T00:00:00. Croner uses the same sign. */
const isOneDate = (expression: string): boolean => expression.includes(':');

/** `nextLocal`: the next time of the day that the expression names, by a clock that is never changed. */
function isEveryHour(nextLocal: Ticks['after']): boolean {
  const firstMs = nextLocal(0);
  if (firstMs === null) return false;
  const dayMs = Math.floor(firstMs / DAY_MS) * DAY_MS;
  return Array.from({ length: 24 }, (_, hour) => dayMs + hour * HOUR_MS).every((hourMs) => {
    const nextMs = nextLocal(hourMs - 1);
    return nextMs !== null && nextMs < hourMs + HOUR_MS;
  });
}

function oncePerTime(nextLocal: Ticks['after'], timeZone: string): Ticks['after'] {
  const clock = new ZoneClock(timeZone);
  return (ms) => {
    const localMs = nextLocal(clock.latestMs(ms));
    return localMs === null ? null : clock.momentMs(localMs);
  };
}

/** Goes back in growing steps until there is a tick in between, then forward to the last one. */
function lastUpTo(ms: number, after: Ticks['after']): number | null {
  for (let doublings = 0; doublings <= DOUBLINGS; doublings++) {
    let found: number | null = null;
    let next = after(ms - 1_000 * 2 ** doublings);
    while (next !== null && next <= ms) {
      found = next;
      next = after(next);
    }
    if (found !== null) return found;
  }
  return null;
}

function loadCroner(): Croner {
  try {
    return createRequire(import.meta.url)('croner') as Croner;
  } catch (cause) {
    if (!(isError(cause) && 'code' in cause)) throw cause;
    throw new InvalidArgumentError(
      "A cron expression needs the package croner: `npm install croner`. { every: '5m' } needs nothing.",
      { cause },
    );
  }
}
