/** Schedules that note what they do. */
import type { Lease } from '../../src/api.js';
import { type ScheduleOptions, schedule, type When } from '../../src/schedule/index.js';
import type { Instance } from './instances.js';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** A schedule whose work notes its ticks and takes `workMs`. */
export function noted({ locks, clock }: Instance, when: When, options: ScheduleOptions = {}, workMs = 0) {
  const ticks: string[] = [];
  const ended: string[] = [];
  const errors: unknown[] = [];
  const leases: Lease[] = [];
  const made = schedule(
    locks,
    'job',
    when,
    async (lease, tick) => {
      ticks.push(tick.toISOString());
      leases.push(lease);
      if (workMs > 0) await clock.sleep(workMs);
      ended.push(tick.toISOString());
    },
    { onError: (error) => errors.push(error), ...options },
  );
  return { ticks, ended, errors, leases, schedule: made };
}

/** The tick of a period that is this many periods after the next one. */
export function tickAfter(nowMs: number, everyMs: number, periods = 0): string {
  return new Date((Math.floor(nowMs / everyMs) + 1 + periods) * everyMs).toISOString();
}

/** No process is kept alive by what is left. */
export const aliveTimers = (timers: Iterable<{ readonly alive: boolean }>): number =>
  [...timers].filter(({ alive }) => alive).length;
