/** When the ticks of a schedule are. The same on every machine: from the epoch, or from a cron expression in one time zone. */
import { createRequire } from 'node:module';
import type { Duration } from '../api.js';
import { durationMs } from '../protocol/durations.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { isError } from '../protocol/is-error.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';

/** A cron expression, or a period whose ticks are its multiples since 1970-01-01T00:00Z. */
export type When = string | { readonly every: Duration };

const EVERY_MS_MIN = 100;
const EVERY_MS_MAX = 366 * 24 * 3_600_000;
/** How far back a tick is looked for: 1 s, doubling this many times, is two years. */
const DOUBLINGS = 26;

/** Milliseconds since the epoch. */
export interface Ticks {
  /** The first tick after this time; null when there is none. */
  after(ms: number): number | null;
  /** The last tick up to this time; null when there is none. */
  upTo(ms: number): number | null;
}

/** The part of croner that is used. */
interface Croner {
  readonly Cron: new (
    expression: string,
    options: { readonly timezone: string; readonly paused: boolean },
  ) => { nextRun(after: Date): Date | null };
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

function cronTicks(expression: string, timeZone: string): Ticks {
  const { Cron } = loadCroner();
  const cron = (() => {
    try {
      const made = new Cron(expression, { timezone: timeZone, paused: true });
      // Some mistakes show only when a time is computed.
      made.nextRun(new Date(0));
      return made;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new InvalidArgumentError(
        `The cron expression ${show(expression)} in the time zone ${show(timeZone)} is not usable: ${why}`,
        { cause },
      );
    }
  })();
  const after = (ms: number): number | null => cron.nextRun(new Date(ms))?.getTime() ?? null;
  return { after, upTo: (ms) => lastUpTo(ms, after) };
}

/** Goes back further and further until there is a tick in between, and then forward to the last. */
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
