/**
 * The record of a lock as Holdfast writes it: compact JSON, about 200 bytes while held, 120 after a release.
 *
 *   { v: format, t: token, d: decision, w: when it was decided, l: lag, n: 1 where there was nothing before,
 *     h: holders, r: rests, q: waiters, e: marks of ended holds }      empty members are left out
 *
 * `w` is the writer's estimate of the time. The server timestamps every message: where that is later than `w`, everything
 * in the record expires that much later. So a hold lasts its ttl from the moment it was stored, however wrong the
 * writer's estimate was. A later record that keeps holds of an earlier one keeps that delay too, as its lag.
 */
import {
  checkVersion,
  type Holder,
  type Mark,
  type Rest,
  STATE_VERSION,
  type State,
  sameHold,
  type Waiter,
} from '../../protocol/index.js';
import type { Found } from '../compare-and-swap/register.js';
import { keyOf, kvKeyOf } from './keys.js';
import { type Layout, type Message, NotALockError, type Stored } from './layout.js';

type Row = readonly (string | number | null)[];

interface Json {
  readonly v: number;
  readonly t: number;
  readonly d: number;
  readonly w: number;
  readonly l?: number | undefined;
  readonly n?: 1 | undefined;
  readonly h?: readonly Row[] | undefined;
  readonly r?: readonly Row[] | undefined;
  readonly q?: readonly Row[] | undefined;
  readonly e?: readonly Row[] | undefined;
}

/**
 * A message stored this long after its decision was delayed in a buffer. On a key that was empty, others may have held
 * the lock meanwhile, with higher tokens, and their record was deleted: so the tokens rise by the delay (F10). The writer
 * got its answer long before that, or never.
 */
export const LATE_MS = 10_000;

export const nativeLayout: Layout = {
  name: 'holdfast',
  bucket: 'holdfast',
  queue: true,
  ownsBucket: true,
  kvKeyOf,
  keyOf,
  encode,
  decode,
};

function encode(next: State, seen: Found<number>, now: number): Message {
  const lagMs = seen.lateMs > 0 && keepsAny(next, seen) ? seen.lateMs : 0;
  const { version, token, decision, holders, rests, waiters, ended } = next;
  const json: Json = {
    v: version,
    t: token,
    d: decision,
    w: now,
    l: lagMs > 0 ? lagMs : undefined,
    n: seen.version === 0 ? 1 : undefined,
    h: rowsOf(
      holders,
      ({ hold, owner, permits, capacity, token, inbox, acquiredAt, expiresAt, metadata }) => [
        hold.process,
        hold.number,
        owner,
        permits,
        capacity,
        token,
        acquiredAt,
        expiresAt,
        inbox,
        metadata,
      ],
    ),
    r: rowsOf(rests, ({ owner, permits, capacity, token, acquiredAt, expiresAt }) => [
      owner,
      permits,
      capacity,
      token,
      acquiredAt,
      expiresAt,
    ]),
    q: rowsOf(waiters, ({ hold, owner, permits, capacity, inbox, since, expiresAt, wokenAt }) => [
      hold.process,
      hold.number,
      owner,
      permits,
      capacity,
      since,
      expiresAt,
      wokenAt,
      inbox,
    ]),
    e: rowsOf(ended, ({ process, number, until }) => [process, number, until]),
  };
  return { payload: JSON.stringify(json), operation: null, lagMs };
}

function rowsOf<Entry>(entries: readonly Entry[], rowOf: (entry: Entry) => Row): readonly Row[] | undefined {
  return entries.length === 0 ? undefined : entries.map(rowOf);
}

/** Whether an entry with an expiry of an earlier record is still there. */
function keepsAny({ holders, rests }: State, { state }: Found<number>): boolean {
  if (!state) return false;
  const kept = holders.some((holder) =>
    state.holders.some((old) => sameHold(old.hold, holder.hold) && old.expiresAt === holder.expiresAt),
  );
  return kept || rests.some((rest) => state.rests.includes(rest));
}

function decode(stored: Stored, key: string): { readonly state: State | null; readonly lateMs: number } {
  // The key was deleted with another tool. The next record replaces the marker, by its revision.
  if (stored.operation !== null) return { state: null, lateMs: 0 };
  const json = jsonOf(stored.payload, key);
  checkVersion(json.v, key);
  const delayMs = Math.max(0, stored.storedAt - json.w);
  const raised = json.n === 1 && delayMs > LATE_MS ? delayMs * 1_000 : 0;
  const state: State = {
    version: STATE_VERSION,
    token: json.t + raised,
    decision: json.d + raised,
    holders: (json.h ?? []).map((row) => holderOf(row, raised)),
    rests: (json.r ?? []).map((row) => restOf(row, raised)),
    waiters: (json.q ?? []).map(waiterOf),
    ended: (json.e ?? []).map(markOf),
  };
  return { state, lateMs: Math.max(delayMs, json.l ?? 0) };
}

function jsonOf(payload: string, key: string): Json {
  try {
    const json: unknown = JSON.parse(payload);
    if (typeof json === 'object' && json !== null && 'v' in json) return json as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new NotALockError(key);
}

function holderOf(row: Row, raised: number): Holder {
  const [process, number, owner, permits, capacity, token, acquiredAt, expiresAt, inbox, metadata] = row;
  return {
    hold: { process: process as string, number: number as number },
    owner: owner as string,
    permits: permits as number,
    capacity: capacity as number,
    token: (token as number) + raised,
    inbox: inbox as string | null,
    acquiredAt: acquiredAt as number,
    expiresAt: expiresAt as number,
    metadata: metadata as string | null,
  };
}

function restOf(row: Row, raised: number): Rest {
  const [owner, permits, capacity, token, acquiredAt, expiresAt] = row;
  return {
    owner: owner as string,
    permits: permits as number,
    capacity: capacity as number,
    token: (token as number) + raised,
    acquiredAt: acquiredAt as number,
    expiresAt: expiresAt as number,
  };
}

function waiterOf(row: Row): Waiter {
  const [process, number, owner, permits, capacity, since, expiresAt, wokenAt, inbox] = row;
  return {
    hold: { process: process as string, number: number as number },
    owner: owner as string,
    permits: permits as number,
    capacity: capacity as number,
    inbox: inbox as string | null,
    since: since as number,
    expiresAt: expiresAt as number,
    wokenAt: wokenAt as number | null,
  };
}

function markOf(row: Row): Mark {
  const [process, number, until] = row;
  return { process: process as string, number: number as number, until: until as number };
}
