/**
 * The layout of github.com/Clever/dynamodb-lock-go:
 *
 *   key           S  the name
 *   owner         S  a process with the same owner has the lock too: that is how it hands locks on
 *   leasedUntil   S  RFC 3339 with nanoseconds, zeros at the end dropped. Taken when absent, or when this is less than
 *                    the taker's time five seconds ago, compared as text, or when the owner is the same
 *   createdAt     S  RFC 3339; absent in versions before it
 *   ttl           S  there a text, which DynamoDB never deletes by; here a number of epoch seconds
 *
 * A heartbeat replaces every item with the same owner, so a hold of ours is lost to a process of the other software that
 * has our owner. Holdfast waits for a hold of the same owner as for any other: an owner is only a label here.
 */
import { bareNameOf, keyOfBareName } from '../../compare-and-swap/foreign.js';
import { type Item, text, textIn } from '../item.js';
import type { DynamodbLayout } from '../layout.js';
import { timeToLive } from '../state-parts.js';
import { barePrefix, beginsWith, LONG_AGO, layoutOf, parseTime, secondsUp } from './shape.js';

const NAME = 'dynamodb-lock-go';
/** It takes a lock only this long after its expiry. That covers differing clocks, so we add nothing. */
const GRACE_MS = 5_000;
/** Nobody's owner: otherwise a late heartbeat would revive the lock. */
const FREE = 'holdfast: released';

/** The items of github.com/Clever/dynamodb-lock-go. */
export const dynamodbLockGo: DynamodbLayout = layoutOf({
  name: NAME,
  table: { partitionKey: 'key', sortKey: null, ttlAttribute: 'ttl' },
  attributes: ['owner', 'leasedUntil', 'createdAt', 'ttl'],
  deciding: ['owner', 'leasedUntil', 'createdAt'],
  keyOf: (key) => ({ key: text(bareNameOf(key, NAME)) }),
  keyIn(item) {
    const name = textIn(item, 'key');
    return name === undefined ? null : keyOfBareName(name);
  },
  filter: (aliases, prefix) =>
    barePrefix(prefix) === ''
      ? `attribute_exists(${aliases.name('leasedUntil')})`
      : beginsWith(aliases, 'key', barePrefix(prefix)),
  held: ({ owner, acquiredAt, expiresAt }) => item(owner, secondsUp(expiresAt), acquiredAt, expiresAt),
  free: (sinceMs) => item(FREE, LONG_AGO, sinceMs, sinceMs),
  freeSigns: { owner: text(FREE), leasedUntil: text(LONG_AGO) },
  read(found) {
    const owner = textIn(found, 'owner');
    const until = parseTime(textIn(found, 'leasedUntil'));
    if (owner === undefined || until === null) return null;
    const acquiredAt = parseTime(textIn(found, 'createdAt')) ?? 0;
    return { owner, acquiredAt, expiresAt: until + GRACE_MS };
  },
});

function item(owner: string, leasedUntil: string, createdMs: number, usedMs: number): Item {
  return {
    owner: text(owner),
    leasedUntil: text(leasedUntil),
    createdAt: text(secondsUp(createdMs)),
    ttl: timeToLive(usedMs),
  };
}
