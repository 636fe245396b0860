/**
 * The state of one key at a store. Plain data: numbers, strings and lists, so that every engine can hold it. Times are
 * whole milliseconds of the store's clock.
 */
import { KEEP_MS, STATE_VERSION, WINDOW_MS } from './constants.js';
import { UnsupportedError } from './errors.js';

/**
 * One process's stay on a key: its random id and a number, from 1, that rises with every hold it makes. Ids that are not
 * random have a colon (`sql:OWNER` of plain SQL): they can be guessed, so the lock service accepts none from its clients.
 */
export interface HoldId {
  readonly process: string;
  readonly number: number;
}

/** A hold that has permits, as the state keeps it. */
export interface Holder {
  readonly hold: HoldId;
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly token: number;
  readonly inbox: string | null;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  /** JSON text as the caller gave it; no store looks inside. */
  readonly metadata: string | null;
}

/** A cool-down after a release within `minHold`: permits that are kept until `expiresAt` and belong to nobody. */
export interface Rest {
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly token: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
}

/** A hold in the queue of its key, as the state keeps it. */
export interface Waiter {
  readonly hold: HoldId;
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly inbox: string | null;
  readonly since: number;
  readonly expiresAt: number;
  /** When its window opened; null while it has not been woken. */
  readonly wokenAt: number | null;
}

/** The highest number of a process's holds on this key that has ended. */
export interface Mark {
  readonly process: string;
  readonly number: number;
  readonly until: number;
}

/** A hold that an operator ended, so that its next renewal learns of it. */
export interface Eviction extends HoldId {
  readonly reason: string | null;
  /** When the hold would have expired, or `EVICTION_MS` after the eviction if that is sooner. */
  readonly until: number;
}

/** The state of one key: holders, waiters, tokens and marks. */
export interface State {
  readonly version: number;
  /** The highest token reserved. */
  readonly token: number;
  /** Rises with every decision that changed something. */
  readonly decision: number;
  readonly holders: readonly Holder[];
  readonly rests: readonly Rest[];
  readonly waiters: readonly Waiter[];
  readonly ended: readonly Mark[];
  /** Nearly always empty; a store writes it only when it is not. */
  readonly evictions: readonly Eviction[];
}

const NONE: readonly never[] = [];

/** The state of a key without holders and waiters. Its next token and decision number are above `last`. */
export const emptyState = (last: number): State => ({
  version: STATE_VERSION,
  token: last,
  decision: last,
  holders: NONE,
  rests: NONE,
  waiters: NONE,
  ended: NONE,
  evictions: NONE,
});

/** The state of a key that nobody ever locked. */
export const EMPTY_STATE: State = emptyState(0);

/** Whether two ids name the same hold. */
export const sameHold = (a: HoldId, b: HoldId): boolean => a.number === b.number && a.process === b.process;

/** Whether a woken waiter did not claim while its window was open. It keeps its place, but holds nobody up. */
export function missedItsWindow(waiter: Waiter, now: number): boolean {
  return waiter.wokenAt !== null && now >= waiter.wokenAt + WINDOW_MS;
}

/** When a store may delete the record: all in it over, the clock past its token, and kept long enough. */
export function expendableAt(state: State): number {
  let at = Math.max(Math.floor(state.token / 1_000), Math.floor(state.decision / 1_000) + KEEP_MS) + 1;
  for (const holder of state.holders) at = Math.max(at, holder.expiresAt + KEEP_MS);
  for (const rest of state.rests) at = Math.max(at, rest.expiresAt);
  for (const waiter of state.waiters) at = Math.max(at, waiter.expiresAt + KEEP_MS);
  for (const mark of state.ended) at = Math.max(at, mark.until);
  for (const eviction of state.evictions) at = Math.max(at, eviction.until);
  return at;
}

/** Refuses a record written by a newer library, before anything is decided on it. */
export function checkVersion(version: unknown, key: string): void {
  if (typeof version === 'number' && version <= STATE_VERSION && version >= 1) return;
  throw new UnsupportedError(
    `The record of "${key}" has format ${String(version)}, and this library knows formats up to ${STATE_VERSION}. ` +
      'A newer Holdfast wrote it: upgrade this one. Nothing was changed.',
    { key },
  );
}
