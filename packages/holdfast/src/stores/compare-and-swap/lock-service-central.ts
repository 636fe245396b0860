/** What LockServiceCentral's records have in common, whatever the engine: names, and who holds a lock. */
import { createHash } from 'node:crypto';
import { type Holder, type Instance, type Rest, UnsupportedError } from '../../protocol/index.js';

export const CENTRAL_LAYOUT = 'lock-service-central';
/** The namespaces and names that the service accepts. */
const PART = /^[A-Za-z0-9_-]{3,64}$/;

/** The namespace and the name of a key; null for one that the service could not have. */
export function centralPartsIn(key: string): readonly [namespace: string, lockName: string] | null {
  const slash = key.indexOf('/');
  const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
  return PART.test(namespace) && PART.test(name) ? [namespace, name] : null;
}

export function centralPartsOf(key: string): readonly [namespace: string, lockName: string] {
  const parts = centralPartsIn(key);
  if (parts) return parts;
  throw new UnsupportedError(
    `The layout ${CENTRAL_LAYOUT} cannot store the lock "${key}": its namespaces and names have 3 to 64 letters, digits, dashes ` +
      'and underscores.',
    { key },
  );
}

/** Begins the texts by which records of ours are known. */
export const OWN_PREFIX = 'holdfast-';

/** A secret that does not reveal the hold, which is a secret too. */
export function secretOf(occupant: Holder | Rest): string {
  if (!('hold' in occupant)) return `${OWN_PREFIX}rest-${occupant.token}`;
  const { process, number } = occupant.hold;
  return OWN_PREFIX + createHash('sha256').update(`${process}/${number}`).digest('hex').slice(0, 40);
}

export function isSameInstance(a: Instance, b: Instance): boolean {
  return a.owner === b.owner && a.instanceId === b.instanceId;
}
