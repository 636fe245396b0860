/** The public shapes of schedules. Types only. */
import type { DrainOptions, Duration, Lease } from '../api.js';

/** `tick`: the time for which the work runs, the same on every machine. The lease is on the schedule's key. */
export type Work = (lease: Lease, tick: Date) => unknown;

/** Options of `schedule`. */
export interface ScheduleOptions {
  /** The time zone of a cron expression, such as 'Europe/Berlin'. Default UTC, which is the same on every machine. */
  readonly timeZone?: string;
  /**
   * For a tick that no process ran in time. `skip`: it is not run. `run-once`: the last missed one runs as soon as a
   * process notices. Default `skip`.
   */
  readonly missed?: 'skip' | 'run-once';
  /** For a tick while the work of an earlier one still runs, in any process. Default `skip`. */
  readonly overlap?: 'skip' | 'queue';
  /** Each process asks for a tick after a random time up to this. Default 0. */
  readonly jitter?: Duration;
  /** The longest that the work may hold the lock. Then the lease is lost and its signal aborts. Default: no limit. */
  readonly maxHold?: Duration;
  /** Gets errors of the work, and of ticks that could not be asked for. Default: a warning of the process. */
  readonly onError?: (error: unknown, tick: Date) => void;
  /** Ends the schedule. Running work goes on. Default none. */
  readonly signal?: AbortSignal;
}

/** A schedule that runs until it is stopped. */
export interface Schedule {
  /** The next tick; null when there is none, or the schedule was stopped. */
  readonly next: Date | null;
  /** Ends the ticks. Running work has until `drain`, then its lease is lost. Default 5 s. */
  stop(options?: DrainOptions): Promise<void>;
}
