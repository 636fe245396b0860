/**
 * Locks in a DynamoDB table.
 *
 * Layout: one item per lock (native-layout.ts), or that of other software (layouts/). A release keeps the item, shrunk to
 * its numbers and marks. The table's time to live deletes it two days after its last use; nothing is decided by that.
 *
 * Atomic: every change is one conditional write of one item (item-register.ts), decided here on the item seen. An
 * uncontended claim is one write on the condition "absent, or free with lower numbers". A failed condition returns the
 * item, so a busy answer is one call too; from endpoints that do not return it, it is read, consistently.
 *
 * Clock: DynamoDB's, estimated from the `Date` header of its replies (dynamodb-time.ts). An expiry is written by the
 * latest time possible, and has passed by the earliest: this machine's clock decides nothing.
 *
 * A lost reply (connection lost, throttled, no answer for seconds): the write may have been executed or not, and the core
 * asks again. The SDK retries too: a retry that fails on its own first write finds its own hold, or exactly the record
 * that it wrote, and counts as written.
 *
 * There are no wake-ups: waiters poll.
 */
import type { Store } from '../../protocol/index.js';
import { listed } from '../clients/listed.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import { type DynamodbClient, type DynamodbCommandClient, methodsOf } from './client.js';
import { CLOCK_ERROR_MS, timeOf } from './dynamodb-time.js';
import type { Item } from './item.js';
import { itemRegister } from './item-register.js';
import { Items } from './items.js';
import { type DynamodbStoreOptions, placeOf } from './options.js';
import { probe } from './probe.js';

/**
 * The client is a `DynamoDB` or `DynamoDBClient` of @aws-sdk/client-dynamodb, or a document client; it is used as it is and
 * never closed. The table has to exist: `createTable` creates it, once.
 */
export function dynamodbStore(
  given: DynamodbClient | DynamodbCommandClient,
  options: DynamodbStoreOptions = {},
): Store {
  const client = methodsOf(given);
  const place = placeOf(options);
  const { layout, queue } = place;
  const items = new Items(client, place.table);
  // A key that no lock has.
  const time = timeOf(client, () => items.getAnything(layout.keyOf('default/holdfast-time')));
  const swap = new CompareAndSwap(itemRegister(items, layout), time, { name: 'DynamoDB', queue });
  const instances = layout.instancesOn?.({ items, time, now: () => swap.now() });

  /**
   * DynamoDB has no order over partition keys, so this scans every item of the table, whatever the prefix: n KB cost n / 4
   * read units, and a call per megabyte. For people and repair, not for each request.
   */
  async function itemsByKey(prefix: string): Promise<ReadonlyMap<string, Item>> {
    const found = new Map<string, Item>();
    for await (const item of items.scan((aliases) => layout.filter(aliases, prefix))) {
      const key = layout.keyIn(item);
      if (key?.startsWith(prefix)) found.set(key, item);
    }
    return found;
  }

  return {
    name: 'dynamodb',
    traits: estimatedTraits(CLOCK_ERROR_MS, { push: false, queue, metered: true }),
    apply: (commands) => swap.apply(commands),
    ...(instances && { instances }),
    read: (key) => swap.read(key),
    async *list(query) {
      swap.checkOpen();
      if (query.limit !== undefined && query.limit <= 0) return;
      const found = await itemsByKey(query.prefix);
      const { earliest } = await swap.now();
      yield* listed(found, query, earliest, (key, item) => layout.decode(key, item));
    },
    async probe() {
      swap.checkOpen();
      await time.sample();
      return probe(client, place, await swap.now());
    },
    async close() {
      swap.close();
      items.close();
    },
  };
}
