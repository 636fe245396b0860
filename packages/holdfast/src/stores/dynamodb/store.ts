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
import {
  keysInOrder,
  type ListQuery,
  type Snapshot,
  type Store,
  snapshotOf,
  type Traits,
} from '../../protocol/index.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { type Calls, callsOf, checkClient, type DynamodbClient } from './client.js';
import { CLOCK_ERROR_MS, timeOf } from './dynamodb-time.js';
import { explainedError } from './errors.js';
import { Aliases, type Item } from './item.js';
import { itemRegister } from './item-register.js';
import type { Layout } from './layout.js';
import { type DynamodbStoreOptions, placeOf } from './options.js';
import { probe } from './probe.js';

/**
 * The client is `new DynamoDB({ … })` of @aws-sdk/client-dynamodb; it is used as it is and never closed. The table has to
 * exist: `createTable` creates it, once.
 */
export function dynamodbStore(client: DynamodbClient, options: DynamodbStoreOptions = {}): Store {
  checkClient(client);
  const { table, layout, queue } = placeOf(options);
  const calls = callsOf(client);
  const register = itemRegister(calls, table, layout);
  const time = timeOf(client, () => sampleTime());
  const swap = new CompareAndSwap(register, time, { name: 'DynamoDB', queue });

  const instances = layout.instancesOn?.({ calls, name: table, time, now: () => swap.now() });

  /** Reads a key that no lock has: half a read unit. */
  async function sampleTime(): Promise<void> {
    const aliases = new Aliases();
    const ProjectionExpression = aliases.name(layout.table.partitionKey);
    const Key = layout.keyOf('default/holdfast-time');
    try {
      await calls.get({
        TableName: table,
        Key,
        ConsistentRead: false,
        ProjectionExpression,
        ...aliases.parts,
      });
    } catch (error) {
      throw explainedError(error, table);
    }
  }

  async function snapshots(query: ListQuery): Promise<readonly Snapshot[]> {
    const items = await scanItems(calls, table, layout, query.prefix);
    const { earliest } = await swap.now();
    return keysInOrder(items.keys(), query).flatMap((key) => {
      const item = items.get(key);
      return (item && snapshotOf(key, layout.decode(key, item), earliest)) ?? [];
    });
  }

  return {
    name: 'dynamodb',
    traits: { ...TRAITS, queue },
    apply: (commands) => swap.apply(commands),
    ...(instances && { instances }),
    read: (key) => swap.read(key),
    async *list(query) {
      await swap.now();
      const { limit = Number.POSITIVE_INFINITY } = query;
      if (limit <= 0) return;
      yield* (await snapshots(query)).slice(0, limit);
    },
    async probe() {
      await swap.now();
      await time.sample();
      return probe(client, { table, layout }, await swap.now());
    },
    async close() {
      swap.close();
      calls.giveUp();
    },
  };
}

const TRAITS: Omit<Traits, 'queue'> = {
  clock: 'estimate',
  clockErrorMs: CLOCK_ERROR_MS,
  push: false,
  shared: 'network',
  durable: true,
  livenessPollMs: null,
  metered: true,
};

/**
 * The items of locks by key. DynamoDB has no order over partition keys, so this scans every item of the table, whatever
 * the prefix: n KB cost n / 4 read units, and a call per megabyte. For people and repair, not for each request.
 */
async function scanItems(
  calls: Calls,
  table: string,
  layout: Layout,
  prefix: string,
): Promise<ReadonlyMap<string, Item>> {
  const aliases = new Aliases();
  const filter = layout.filter?.(aliases, prefix);
  const input = {
    TableName: table,
    ConsistentRead: true,
    ...(filter !== undefined && { FilterExpression: filter }),
    ...aliases.parts,
  };
  const items = new Map<string, Item>();
  let from: Item | undefined;
  do {
    const page = await pageOf(calls, { ...input, ...(from && { ExclusiveStartKey: from }) }, table);
    for (const item of page.Items ?? []) {
      const key = layout.keyIn(item);
      if (key?.startsWith(prefix)) items.set(key, item);
    }
    from = page.LastEvaluatedKey;
  } while (from);
  return items;
}

async function pageOf(calls: Calls, input: Parameters<Calls['scan']>[0], table: string) {
  try {
    return await calls.scan(input);
  } catch (error) {
    throw explainedError(error, table);
  }
}
