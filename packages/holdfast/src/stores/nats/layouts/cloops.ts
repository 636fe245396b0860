/**
 * The layout of the C# package cloops.nats in the bucket `locks`: under the raw name, the JSON
 *
 *   owner             the holder
 *   expiresAtUnixMs   a number, or a text in newer versions. Taken, by revision, when this is not later than now
 *   holdfast          ours: the whole state. Other software ignores it and drops it with its next write
 *
 * The clock is the C# process's. A released lock is a deletion marker, as cloops leaves it; ours has token and marks in
 * its payload. A renewal of cloops renews once and never again, and a release after it does nothing: it goes by the
 * first revision. Such a lock ends by its time, and is left alone until then. Every write of ours would move the
 * revision under a holder, so while cloops holds there is none.
 */
import { type State, UnsupportedError } from '../../../protocol/index.js';
import {
  bareNameOf,
  CLOCKS_APART_MS,
  checkPlainLock,
  foreignState,
  keyOfBareName,
  leavesForeign,
  occupantOf,
  ownPart,
  ownPartIn,
} from '../../compare-and-swap/foreign.js';
import { parsedObject } from '../../compare-and-swap/records.js';
import { type ForeignLayout, type NatsLayout, notALock, type Stored } from '../layout.js';

const NAME = 'cloops';
const LEGAL = /^[-/_=a-zA-Z0-9]+(?:\.[-/_=a-zA-Z0-9]+)*$/;
/** Keys of the store itself begin with this. */
const OWN_KEYS = /^=/;

interface LockDocument {
  readonly owner: string;
  readonly expiresAtUnixMs: number;
}

const layout: ForeignLayout = {
  store: 'nats',
  name: NAME,
  bucket: 'locks',
  queue: false,
  ownsBucket: false,
  kvKeyOf: rawKeyOf,
  keyOf: (kvKey) => (isRawKey(kvKey) ? keyOfBareName(kvKey) : null),
  encode(next, seen, now) {
    if (seen.state && leavesForeign(seen.state, next, now)) return null;
    const { evictions, ...own } = ownPart(next);
    const holdfast = evictions.length > 0 ? { ...own, evictions } : own;
    const document = { ...documentOf(next), holdfast };
    return { payload: JSON.stringify(document), operation: occupantOf(next) ? null : 'DEL' };
  },
  decode: (stored, key) => ({ state: stateOf(stored, key), lateMs: 0 }),
  check(command) {
    rawKeyOf(command.key);
    checkPlainLock(command, NAME);
  },
};

/** The bucket `locks` of cloops.microservices. */
export const cloops: NatsLayout = layout;

/** The part of the record that cloops reads. */
function documentOf(state: State): LockDocument {
  const occupant = occupantOf(state);
  if (!occupant) return { owner: '', expiresAtUnixMs: 0 };
  return { owner: occupant.owner, expiresAtUnixMs: occupant.expiresAt + CLOCKS_APART_MS };
}

function stateOf({ payload, operation, storedAt }: Stored, key: string): State | null {
  if (operation === 'PURGE' || payload === '') return null;
  const document = parsedObject(payload);
  const found = document && lockDocument(document);
  const own = document && ownPartIn(document.holdfast, key);
  if (own && found && isWrittenFor(own, found)) return own;
  if (operation === 'DEL') return null;
  if (!found) throw notALock(key);
  const { owner, expiresAtUnixMs } = found;
  return foreignState({ owner, acquiredAt: storedAt, expiresAt: expiresAtUnixMs + CLOCKS_APART_MS });
}

function isWrittenFor(state: State, { owner, expiresAtUnixMs }: LockDocument): boolean {
  const written = documentOf(state);
  return written.owner === owner && written.expiresAtUnixMs === expiresAtUnixMs;
}

/** Names in any case, as cloops reads them. */
function lockDocument(document: Readonly<Record<string, unknown>>): LockDocument | null {
  const members = new Map(Object.entries(document).map(([name, value]) => [name.toLowerCase(), value]));
  const owner = members.get('owner') ?? '';
  const until = members.get('expiresatunixms');
  const expiresAtUnixMs = typeof until === 'string' && /^-?\d+$/.test(until) ? Number(until) : until;
  if (typeof owner !== 'string' || !Number.isSafeInteger(expiresAtUnixMs)) return null;
  return { owner, expiresAtUnixMs: expiresAtUnixMs as number };
}

function isRawKey(name: string): boolean {
  return LEGAL.test(name) && !OWN_KEYS.test(name);
}

function rawKeyOf(key: string): string {
  const name = bareNameOf(key, NAME);
  if (isRawKey(name)) return name;
  throw new UnsupportedError(
    `The layout ${NAME} keeps names as NATS keys, as they are, and "${name}" cannot be one: letters, digits, ` +
      "'-', '/', '_', '=' and single dots inside can, and a '=' not as the first.",
    { key },
  );
}
