/** Schedules: work at certain times, each time in one of any number of processes. */
import type { Locks } from '../api.js';
import { TickSchedule } from './tick-schedule.js';
import type { When } from './ticks.js';
import type { Schedule, ScheduleOptions, Work } from './types.js';

export { acquireTick, type TickOptions } from './tick-lock.js';
export type { When } from './ticks.js';
export type { Schedule, ScheduleOptions, Work } from './types.js';

/**
 * Runs the work at every tick, in one of the processes that have the same schedule, under the lock `key`. All of them have
 * to name the same times and the same options, and their clocks may be up to 30 s apart. At most once per tick: a tick
 * whose process dies is not run again. Keeps the process alive until it is stopped or its locks are closed.
 */
export function schedule(
  locks: Locks,
  key: string,
  when: When,
  work: Work,
  options: ScheduleOptions = {},
): Schedule {
  return new TickSchedule(locks, key, when, work, options);
}
