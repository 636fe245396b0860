/**
 * A lock among other items of one table, as Lambdas in Go write it:
 *
 *   PK, SK       S  LOCK#name, LOCK
 *   LockID       S  one per grant
 *   Owner        S
 *   AcquiredAt   S  RFC 3339
 *   ExpiresAt    S  RFC 3339, whole seconds. Taken when absent or `ExpiresAt < now`, compared as text
 *   TTL          N  epoch seconds, for cleaning up
 *
 * Released by LockID and Owner. The clock is the Lambda's.
 */
import { bareNameOf, CLOCKS_APART_MS, keyOfBareName } from '../../compare-and-swap/foreign.js';
import { type Item, text, textIn } from '../item.js';
import type { DynamodbLayout } from '../layout.js';
import { timeToLive } from '../state-parts.js';
import { barePrefix, beginsWith, LONG_AGO, layoutOf, parseTime, secondsUp } from './shape.js';

const NAME = 'single-table';
const PREFIX = 'LOCK#';
const SORT = 'LOCK';
const FREE = 'holdfast-free';
/** Equal seconds have not passed yet, and the seconds written were rounded down. */
const ROUNDED_MS = 1_000;

/** Locks among other items of one table, as Lambdas in Go write them. */
export const singleTable: DynamodbLayout = layoutOf({
  name: NAME,
  table: { partitionKey: 'PK', sortKey: 'SK', ttlAttribute: 'TTL' },
  attributes: ['LockID', 'Owner', 'AcquiredAt', 'ExpiresAt', 'TTL'],
  deciding: ['LockID', 'Owner', 'AcquiredAt', 'ExpiresAt'],
  keyOf: (key) => ({ PK: text(PREFIX + bareNameOf(key, NAME)), SK: text(SORT) }),
  keyIn(item) {
    const partition = textIn(item, 'PK');
    if (!partition?.startsWith(PREFIX) || textIn(item, 'SK') !== SORT) return null;
    return keyOfBareName(partition.slice(PREFIX.length));
  },
  filter(aliases, prefix) {
    const isLock = `${aliases.name('SK')} = ${aliases.value(text(SORT))}`;
    return `${isLock} AND ${beginsWith(aliases, 'PK', PREFIX + barePrefix(prefix))}`;
  },
  held: ({ token, owner, acquiredAt, expiresAt }) =>
    item(
      `holdfast-${token}`,
      owner,
      secondsUp(acquiredAt),
      secondsUp(expiresAt + CLOCKS_APART_MS),
      expiresAt,
    ),
  free: (sinceMs) => item(FREE, 'holdfast', secondsUp(sinceMs), LONG_AGO, sinceMs),
  freeSigns: { LockID: text(FREE), ExpiresAt: text(LONG_AGO) },
  read(found) {
    const owner = textIn(found, 'Owner');
    const until = parseTime(textIn(found, 'ExpiresAt'));
    if (owner === undefined || until === null) return null;
    const acquiredAt = parseTime(textIn(found, 'AcquiredAt')) ?? 0;
    return { owner, acquiredAt, expiresAt: until + ROUNDED_MS + CLOCKS_APART_MS };
  },
});

function item(id: string, owner: string, acquiredAt: string, expiresAt: string, usedMs: number): Item {
  return {
    LockID: text(id),
    Owner: text(owner),
    AcquiredAt: text(acquiredAt),
    ExpiresAt: text(expiresAt),
    TTL: timeToLive(usedMs),
  };
}
