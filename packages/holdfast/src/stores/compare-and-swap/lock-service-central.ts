/**
 * The records of github.com/UnitVectorY-Labs/LockServiceCentral, on any engine:
 *
 *   namespace, lockName
 *   owner           the signed-in user
 *   instanceId      a secret of the client: the same owner and instance may acquire the lock again
 *   leaseDuration   seconds, with all renewals
 *   expiry          epoch seconds. The lock is taken when the record is absent, or `expiry < now` in whole seconds
 *
 * A released lock of ours stays as a record that expired a day ago, with its token and marks.
 */
import { createHash } from 'node:crypto';
import {
  type Holder,
  type Instance,
  type InstanceLease,
  type Rest,
  type State,
  UnsupportedError,
} from '../../protocol/index.js';
import {
  boundedMs,
  CLOCKS_APART_MS,
  checkPlainLock,
  type ForeignHold,
  foreignState,
  occupantOf,
  ownPartIn,
  storedPart,
} from './foreign.js';
import { type Fields, NotALockError, parsedObject, type RecordLayout } from './records.js';
import type { Reading } from './register.js';

export const CENTRAL_LAYOUT = 'lock-service-central';
/** The namespaces and names that the service accepts. */
const PART = /^[A-Za-z0-9_-]{3,64}$/;
/** The beginning of the texts that mark our records. */
export const OWN_PREFIX = 'holdfast-';
/** The owner and the instance of a record that is free. */
export const FREE_OWNER = 'holdfast';
export const FREE_INSTANCE = `${OWN_PREFIX}free`;
/** A released lock expired this long ago: past by any clock, and recent enough for a time to live to delete it. */
const EXPIRED_SECONDS = 24 * 60 * 60;
/** The field of our part, as JSON. */
const OWN = 'holdfast';

/** A record, under the names that it has in most engines. */
export type CentralRecord = InstanceLease & { readonly namespace: string; readonly lockName: string };

/** The namespace and the name of a key; null for a key that the service cannot have. */
function centralPartsIn(key: string): readonly [namespace: string, lockName: string] | null {
  const slash = key.indexOf('/');
  const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
  return PART.test(namespace) && PART.test(name) ? [namespace, name] : null;
}

function centralPartsOf(key: string): readonly [namespace: string, lockName: string] {
  const parts = centralPartsIn(key);
  if (parts) return parts;
  throw new UnsupportedError(
    `The layout ${CENTRAL_LAYOUT} cannot store the lock "${key}": its namespaces and names have 3 to 64 letters, digits, dashes ` +
      'and underscores.',
    { key },
  );
}

export function centralIdOf(key: string): string {
  return centralPartsOf(key).join(':');
}

/** Null for an id that is not of a lock. */
export function centralKeyIn(id: string): string | null {
  const key = id.replace(':', '/');
  return centralPartsIn(key)?.join(':') === id ? key : null;
}

/** A secret that does not reveal the hold, which is a secret too. */
export function secretOf(occupant: Holder | Rest): string {
  if (!('hold' in occupant)) return `${OWN_PREFIX}rest-${occupant.token}`;
  const { process, number } = occupant.hold;
  return OWN_PREFIX + createHash('sha256').update(`${process}/${number}`).digest('hex').slice(0, 40);
}

export function isSameInstance(a: Instance, b: Instance): boolean {
  return a.owner === b.owner && a.instanceId === b.instanceId;
}

/** Counts a second longer than at the service, because its processes use clocks of their own. */
export function isActive({ expiry }: InstanceLease, { earliest }: Reading): boolean {
  return expiry >= Math.floor((earliest - CLOCKS_APART_MS) / 1_000);
}

export function leasedRecord(key: string, lease: InstanceLease): CentralRecord {
  const [namespace, lockName] = centralPartsOf(key);
  const { owner, instanceId, leaseDuration, expiry } = lease;
  return { namespace, lockName, owner, instanceId, leaseDuration, expiry };
}

/** `spareMs`: how much later than the hold the record expires, for clocks that differ. */
export function heldRecord(
  key: string,
  occupant: Holder | Rest,
  spareMs: number = CLOCKS_APART_MS,
): CentralRecord {
  const { owner, acquiredAt, expiresAt } = occupant;
  const leaseDuration = Math.ceil((expiresAt - acquiredAt) / 1_000);
  const expiry = Math.ceil((expiresAt + spareMs) / 1_000);
  return leasedRecord(key, { owner, instanceId: secretOf(occupant), leaseDuration, expiry });
}

export function freeRecord(
  key: string,
  sinceMs: number,
  expiry = Math.floor(sinceMs / 1_000) - EXPIRED_SECONDS,
): CentralRecord {
  return leasedRecord(key, { owner: FREE_OWNER, instanceId: FREE_INSTANCE, leaseDuration: 0, expiry });
}

/** Null for a record that is not a lock. */
export function leaseIn({ owner, instanceId, leaseDuration, expiry }: Fields): InstanceLease | null {
  if (typeof owner !== 'string' || typeof instanceId !== 'string' || typeof expiry !== 'number') return null;
  return { owner, instanceId, leaseDuration: typeof leaseDuration === 'number' ? leaseDuration : 0, expiry };
}

export function holdOf({ owner, leaseDuration, expiry }: InstanceLease): ForeignHold {
  return {
    owner,
    acquiredAt: boundedMs((expiry - leaseDuration) * 1_000),
    // The lock lasts through the second of its expiry.
    expiresAt: boundedMs((expiry + 1) * 1_000 + CLOCKS_APART_MS),
  };
}

/** Throws if it is not a lock, or if a newer library wrote it. */
export function checkedLease(key: string, fields: Fields): InstanceLease {
  ownStateIn(key, fields);
  const lease = leaseIn(fields);
  if (lease) return lease;
  throw new NotALockError(
    `The record of "${key}" is not a lock of LockServiceCentral: it needs owner, instanceId and expiry. Nothing was changed.`,
    key,
  );
}

/** Our part of a record; null if the service wrote the record. */
export function ownStateIn(key: string, fields: Fields): State | null {
  const part = fields[OWN];
  return ownPartIn(typeof part === 'string' ? parsedObject(part) : part, key);
}

function recordOf(key: string, state: State): CentralRecord {
  const occupant = occupantOf(state);
  return occupant ? heldRecord(key, occupant) : freeRecord(key, Math.floor(state.decision / 1_000));
}

/** Compares the fields by which the service decides. */
function isSameLease(a: InstanceLease, b: InstanceLease): boolean {
  return isSameInstance(a, b) && a.expiry === b.expiry;
}

/** Records of fields, by id. The service drops our part when it acquires or renews, and deletes the record when it releases. */
export const centralRecords: RecordLayout = {
  idOf: centralIdOf,
  startOf: (prefix) => prefix.replace('/', ':'),
  keyIn: centralKeyIn,
  encode: (key, state) => ({ ...recordOf(key, state), [OWN]: JSON.stringify(storedPart(state)) }),
  decode(key, fields) {
    const own = ownStateIn(key, fields);
    const lease = checkedLease(key, fields);
    if (own && isSameLease(lease, recordOf(key, own))) return own;
    return foreignState(holdOf(lease), own ?? undefined);
  },
  check(command) {
    centralPartsOf(command.key);
    checkPlainLock(command, CENTRAL_LAYOUT);
  },
};
