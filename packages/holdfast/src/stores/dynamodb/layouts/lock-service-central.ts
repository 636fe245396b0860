/**
 * As github.com/UnitVectorY-Labs/LockServiceCentral keeps locks in DynamoDB:
 *
 *   lockId               S  namespace:lockName
 *   namespace, lockName  S
 *   owner                S  who signed in
 *   instanceId           S  a secret of the client: with the same owner and instanceId, the lock may be had again
 *   leaseDuration        N  seconds, with all renewals
 *   expiry               N  epoch seconds. Taken when absent or `expiry < now` in whole seconds; also the table's TTL
 *   holdfastOperation    S  only where an instance acts through Holdfast's service: see instance-locks.ts
 *
 * The clock is the service's. As the TTL is the expiry itself, DynamoDB may delete a released record at any time, and
 * token and marks with it: tokens then rise by the time.
 */
import { createHash } from 'node:crypto';
import { type Holder, type Rest, UnsupportedError } from '../../../protocol/index.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import type { Layout } from '../layout.js';
import { type Item, number, numberIn, text, textIn } from '../values.js';
import { OPERATION } from './instance-item.js';
import { InstanceRecords } from './instance-locks.js';
import { beginsWith, layoutOf, type Shape } from './shape.js';

const NAME = 'lock-service-central';
/** What the service takes for a namespace or a name. */
const PART = /^[A-Za-z0-9_-]{3,64}$/;
/** So long ago was over what is released: by any clock, and recent enough for DynamoDB to clean it up. */
const LONG_OVER_SECONDS = 24 * 60 * 60;
const FREE = 'holdfast-free';

const shape: Shape = {
  name: NAME,
  table: { partitionKey: 'lockId', sortKey: null, ttlAttribute: 'expiry' },
  attributes: ['namespace', 'lockName', 'owner', 'instanceId', 'leaseDuration', 'expiry', OPERATION],
  telling: ['owner', 'instanceId', 'expiry'],
  keyOf: (key) => ({ lockId: text(partsOf(key).join(':')) }),
  keyIn(item) {
    const [namespace = '', name = '', ...more] = textIn(item, 'lockId')?.split(':') ?? [];
    return PART.test(namespace) && PART.test(name) && more.length === 0 ? `${namespace}/${name}` : null;
  },
  filter: (aliases, prefix) =>
    prefix === ''
      ? `attribute_exists(${aliases.name('expiry')})`
      : beginsWith(aliases, 'lockId', prefix.replace('/', ':')),
  held(occupant, key) {
    const { owner, acquiredAt, expiresAt } = occupant;
    const seconds = Math.ceil((expiresAt - acquiredAt) / 1_000);
    const expiry = Math.ceil((expiresAt + CLOCKS_APART_MS) / 1_000);
    return item(key, owner, instanceOf(occupant), seconds, expiry);
  },
  free: (sinceMs, key) => item(key, 'holdfast', FREE, 0, Math.floor(sinceMs / 1_000) - LONG_OVER_SECONDS),
  freeSigns: { owner: text('holdfast'), instanceId: text(FREE), leaseDuration: number(0) },
  read(found) {
    const owner = textIn(found, 'owner');
    const expiry = numberIn(found, 'expiry');
    if (owner === undefined || expiry === undefined || textIn(found, 'instanceId') === undefined) return null;
    const acquiredAt = (expiry - (numberIn(found, 'leaseDuration') ?? 0)) * 1_000;
    // The second named is still a second of the lock.
    return { owner, acquiredAt, expiresAt: (expiry + 1) * 1_000 + CLOCKS_APART_MS };
  },
};

export const lockServiceCentral: Layout = {
  ...layoutOf(shape),
  instancesOn: (table) =>
    new InstanceRecords(table, {
      keyOf: shape.keyOf,
      held: (key, { owner, instanceId, leaseDuration, expiry }) =>
        item(key, owner, instanceId, leaseDuration, expiry),
      free: shape.free,
    }),
};

function item(key: string, owner: string, instanceId: string, leaseDuration: number, expiry: number): Item {
  const [namespace, lockName] = partsOf(key);
  return {
    namespace: text(namespace),
    lockName: text(lockName),
    owner: text(owner),
    instanceId: text(instanceId),
    leaseDuration: number(leaseDuration),
    expiry: number(expiry),
  };
}

/** Known to nobody else, and no way back to the hold, which is a secret too. */
function instanceOf(occupant: Holder | Rest): string {
  if (!('hold' in occupant)) return `holdfast-rest-${occupant.token}`;
  const { process, number: count } = occupant.hold;
  return `holdfast-${createHash('sha256').update(`${process}/${count}`).digest('hex').slice(0, 40)}`;
}

function partsOf(key: string): [namespace: string, lockName: string] {
  const slash = key.indexOf('/');
  const namespace = key.slice(0, slash);
  const name = key.slice(slash + 1);
  if (PART.test(namespace) && PART.test(name)) return [namespace, name];
  throw new UnsupportedError(
    `The service whose layout ${NAME} is could not name the lock "${key}": its namespaces and names have 3 to 64 ` +
      'letters, digits, dashes and underscores.',
    { key },
  );
}
