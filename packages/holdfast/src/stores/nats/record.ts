/**
 * The record of a lock as Holdfast writes it: compact JSON, about 200 bytes while held, 120 after a release.
 *
 *   { v: format, t: token, d: decision, w: when it was decided, l: lag, n: 1 where there was nothing before,
 *     h: holders, r: rests, q: waiters, e: marks of ended holds, x: evictions }      empty members are left out
 *
 * `w` is the writer's estimate of the time. The server timestamps every message: where that is later than `w`, everything
 * in the record expires that much later. So a hold lasts its ttl from the moment it was stored, however wrong the
 * writer's estimate was. A later record that keeps holds of an earlier one keeps that delay too, as its lag.
 */
import {
  checkVersion,
  type Eviction,
  type Holder,
  type HoldId,
  type Mark,
  type Rest,
  STATE_VERSION,
  type State,
  sameHold,
  type Waiter,
} from '../../protocol/index.js';
import { parsedObject } from '../compare-and-swap/records.js';
import type { Found } from '../compare-and-swap/register.js';
import { keyOf, kvKeyOf } from './keys.js';
import { type Layout, type Message, notALock, type Stored } from './layout.js';

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
  readonly x?: readonly Row[] | undefined;
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

/** The members of the rows, in their stored order. The rows of holders and waiters begin with process and number. */
const REST = ['owner', 'permits', 'capacity', 'token', 'acquiredAt', 'expiresAt'] as const;
const HOLDER = [...REST, 'inbox', 'metadata'] as const;
const WAITER = ['owner', 'permits', 'capacity', 'since', 'expiresAt', 'wokenAt', 'inbox'] as const;
const MARK = ['process', 'number', 'until'] as const;
const EVICTION = [...MARK, 'reason'] as const;

function encode(next: State, seen: Found<number>, now: number): Message {
  const lagMs = seen.lateMs > 0 && keepsAny(next, seen) ? seen.lateMs : 0;
  const { version, token, decision, holders, rests, waiters, ended, evictions } = next;
  const json: Json = {
    v: version,
    t: token,
    d: decision,
    w: now,
    l: lagMs > 0 ? lagMs : undefined,
    n: seen.version === 0 ? 1 : undefined,
    h: rowsOf(holders, (holder) => holdRow(holder, HOLDER)),
    r: rowsOf(rests, (rest) => REST.map((member) => rest[member])),
    q: rowsOf(waiters, (waiter) => holdRow(waiter, WAITER)),
    e: rowsOf(ended, (mark) => MARK.map((member) => mark[member])),
    x: rowsOf(evictions, (eviction) => EVICTION.map((member) => eviction[member])),
  };
  return { payload: JSON.stringify(json), operation: null, lagMs };
}

function rowsOf<Entry>(entries: readonly Entry[], rowOf: (entry: Entry) => Row): readonly Row[] | undefined {
  return entries.length === 0 ? undefined : entries.map(rowOf);
}

function holdRow<M extends string>(
  entry: { readonly hold: HoldId } & Readonly<Record<M, Row[number]>>,
  members: readonly M[],
): Row {
  return [entry.hold.process, entry.hold.number, ...members.map((member) => entry[member])];
}

/** The reverse. The types are those of the entry that was encoded. */
function entryOf<Entry>(row: Row, members: readonly (keyof Entry)[]): Entry {
  return Object.fromEntries(members.map((member, index) => [member, row[index]])) as Entry;
}

function heldEntryOf<Entry extends { readonly hold: HoldId }>(
  [process, number, ...row]: Row,
  members: readonly (keyof Entry)[],
): Entry {
  return { ...entryOf<Entry>(row, members), hold: { process, number } as HoldId };
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
  const found = parsedObject(stored.payload);
  if (!found || !('v' in found)) throw notALock(key);
  checkVersion(found.v, key);
  const json = found as unknown as Json;
  const delayMs = Math.max(0, stored.storedAt - json.w);
  const raised = json.n === 1 && delayMs > LATE_MS ? delayMs * 1_000 : 0;
  const raise = <Entry extends Holder | Rest>(entry: Entry): Entry =>
    raised === 0 ? entry : { ...entry, token: entry.token + raised };
  const state: State = {
    version: STATE_VERSION,
    token: json.t + raised,
    decision: json.d + raised,
    holders: (json.h ?? []).map((row) => raise(heldEntryOf<Holder>(row, HOLDER))),
    rests: (json.r ?? []).map((row) => raise(entryOf<Rest>(row, REST))),
    waiters: (json.q ?? []).map((row) => heldEntryOf<Waiter>(row, WAITER)),
    ended: (json.e ?? []).map((row) => entryOf<Mark>(row, MARK)),
    evictions: (json.x ?? []).map((row) => entryOf<Eviction>(row, EVICTION)),
  };
  return { state, lateMs: Math.max(delayMs, json.l ?? 0) };
}
