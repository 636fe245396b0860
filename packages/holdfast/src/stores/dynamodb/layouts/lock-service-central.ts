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
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import {
  CENTRAL_LAYOUT,
  centralPartsIn,
  centralPartsOf,
  OWN_PREFIX,
  secretOf,
} from '../../compare-and-swap/lock-service-central.js';
import { type Item, number, numberIn, text, textIn } from '../item.js';
import type { Layout } from '../layout.js';
import { InstanceRecords, OPERATION } from './instance-records.js';
import { beginsWith, layoutOf, type Shape } from './shape.js';

/** A released lock expired this long ago: by any clock, and recently enough for DynamoDB to delete it. */
const EXPIRED_SECONDS = 24 * 60 * 60;
const FREE = `${OWN_PREFIX}free`;

const shape: Shape = {
  name: CENTRAL_LAYOUT,
  table: { partitionKey: 'lockId', sortKey: null, ttlAttribute: 'expiry' },
  attributes: ['namespace', 'lockName', 'owner', 'instanceId', 'leaseDuration', 'expiry', OPERATION],
  deciding: ['owner', 'instanceId', 'expiry'],
  keyOf: (key) => ({ lockId: text(centralPartsOf(key).join(':')) }),
  keyIn(item) {
    const key = textIn(item, 'lockId')?.replaceAll(':', '/') ?? '';
    return centralPartsIn(key) ? key : null;
  },
  filter: (aliases, prefix) =>
    prefix === ''
      ? `attribute_exists(${aliases.name('expiry')})`
      : beginsWith(aliases, 'lockId', prefix.replace('/', ':')),
  held(occupant, key) {
    const { owner, acquiredAt, expiresAt } = occupant;
    const seconds = Math.ceil((expiresAt - acquiredAt) / 1_000);
    const expiry = Math.ceil((expiresAt + CLOCKS_APART_MS) / 1_000);
    return item(key, owner, secretOf(occupant), seconds, expiry);
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
  const [namespace, lockName] = centralPartsOf(key);
  return {
    namespace: text(namespace),
    lockName: text(lockName),
    owner: text(owner),
    instanceId: text(instanceId),
    leaseDuration: number(leaseDuration),
    expiry: number(expiry),
  };
}
