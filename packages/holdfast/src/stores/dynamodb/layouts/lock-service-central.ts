/**
 * LockServiceCentral's records (compare-and-swap/lock-service-central.ts) in DynamoDB:
 *
 *   lockId              S  namespace:lockName
 *   the fields          S and N, under their names. `expiry` is also the table's TTL
 *   holdfastOperation   S  only where an instance acts through Holdfast's service: see instance-records.ts
 *
 * The clock is the service's. As the TTL is the expiry itself, DynamoDB may delete a released record at any time, and
 * token and marks with it: tokens then follow the time.
 */
import {
  CENTRAL_LAYOUT,
  centralKeyIn,
  FREE_INSTANCE,
  FREE_OWNER,
  freeRecord,
  heldRecord,
  holdOf,
  leaseIn,
} from '../../compare-and-swap/lock-service-central.js';
import { number, text, textIn } from '../item.js';
import type { DynamodbLayout, ForeignLayout } from '../layout.js';
import { fieldsOf, InstanceRecords, itemOf, keyOf, OPERATION } from './instance-records.js';
import { beginsWith, layoutOf, type Shape } from './shape.js';

const shape: Shape = {
  name: CENTRAL_LAYOUT,
  table: { partitionKey: 'lockId', sortKey: null, ttlAttribute: 'expiry' },
  attributes: ['namespace', 'lockName', 'owner', 'instanceId', 'leaseDuration', 'expiry', OPERATION],
  deciding: ['owner', 'instanceId', 'expiry'],
  keyOf,
  keyIn: (item) => centralKeyIn(textIn(item, 'lockId') ?? ''),
  filter: (aliases, prefix) =>
    prefix === ''
      ? `attribute_exists(${aliases.name('expiry')})`
      : beginsWith(aliases, 'lockId', prefix.replace('/', ':')),
  held: (occupant, key) => itemOf(heldRecord(key, occupant)),
  free: (sinceMs, key) => itemOf(freeRecord(key, sinceMs)),
  freeSigns: { owner: text(FREE_OWNER), instanceId: text(FREE_INSTANCE), leaseDuration: number(0) },
  read(item) {
    const lease = leaseIn(fieldsOf(item));
    return lease && holdOf(lease);
  },
};

const layout: ForeignLayout = {
  ...layoutOf(shape),
  instancesOn: (table) => new InstanceRecords(table),
};

/** The items of LockServiceCentral. */
export const lockServiceCentral: DynamodbLayout = layout;
