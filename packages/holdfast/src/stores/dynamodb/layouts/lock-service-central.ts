/**
 * The layout of github.com/UnitVectorY-Labs/LockServiceCentral in DynamoDB:
 *
 *   lockId               S  namespace:lockName
 *   namespace, lockName  S
 *   owner                S  the signed-in user
 *   instanceId           S  a secret of the client: the same owner and instanceId may acquire the lock again
 *   leaseDuration        N  seconds, with all renewals
 *   expiry               N  epoch seconds. Taken when absent or `expiry < now` in whole seconds; also the table's TTL
 *   holdfastOperation    S  only where an instance acts through Holdfast's service: see instance-records.ts
 *
 * The clock is the service's. As the TTL is the expiry itself, DynamoDB may delete a released record at any time, and
 * token and marks with it: tokens then follow the time.
 */
import { createHash } from 'node:crypto';
import { type Holder, type Rest, UnsupportedError } from '../../../protocol/index.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import { type Item, number, numberIn, text, textIn } from '../item.js';
import type { Layout } from '../layout.js';
import { InstanceRecords, OPERATION } from './instance-records.js';
import { beginsWith, layoutOf, type Shape } from './shape.js';

const NAME = 'lock-service-central';
/** The namespaces and names that the service accepts. */
const PART = /^[A-Za-z0-9_-]{3,64}$/;
/** A released lock expired this long ago: by any clock, and recently enough for DynamoDB to delete it. */
const EXPIRED_SECONDS = 24 * 60 * 60;
const FREE = 'holdfast-free';

const shape: Shape = {
  name: NAME,
  table: { partitionKey: 'lockId', sortKey: null, ttlAttribute: 'expiry' },
  attributes: ['namespace', 'lockName', 'owner', 'instanceId', 'leaseDuration', 'expiry', OPERATION],
  deciding: ['owner', 'instanceId', 'expiry'],
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
  free: (sinceMs, key) => item(key, 'holdfast', FREE, 0, Math.floor(sinceMs / 1_000) - EXPIRED_SECONDS),
  freeSigns: { owner: text('holdfast'), instanceId: text(FREE), leaseDuration: number(0) },
  read(found) {
    const owner = textIn(found, 'owner');
    const expiry = numberIn(found, 'expiry');
    if (owner === undefined || expiry === undefined || textIn(found, 'instanceId') === undefined) return null;
    const acquiredAt = (expiry - (numberIn(found, 'leaseDuration') ?? 0)) * 1_000;
    // The lock lasts through the second of its expiry.
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

/** A secret that does not reveal the hold, which is a secret too. */
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
    `The layout ${NAME} cannot store the lock "${key}": its namespaces and names have 3 to 64 letters, digits, dashes ` +
      'and underscores.',
    { key },
  );
}
