/**
 * Locks in a DynamoDB table.
 *
 * Layout: one item a lock (native-layout.ts), or that of other software (layouts/). A release keeps the item, shrunk to
 * its numbers and marks; the table's time to live removes it two days after its last use, and nothing is decided by that.
 *
 * Atomic: every change is one conditional write of one item (item-register.ts), decided here on what was there. An
 * uncontended claim is one write with the guess "absent, or free with lower numbers". A condition that fails brings the
 * item back, so a busy answer is one call too; from endpoints that do not send it, it is read, consistently.
 *
 * Clock: DynamoDB's, estimated from the `Date` header of its replies (time.ts). A holder's end is written by the latest
 * it may be, and is over by the earliest: this machine's own clock decides nothing.
 *
 * A reply is lost with its connection, by throttling, or when none comes for seconds: the write may have been made or
 * not, and the core asks again. The SDK asks again by itself too; what then fails on its own write finds its own hold
 * there, or exactly the record that it wrote, and answers as if the first reply had come.
 *
 * Nothing here wakes anybody: waiters ask again, as the core does where no hints come.
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
import { callsOf, type DynamodbClient } from './client.js';
import { Aliases } from './expressions.js';
import { itemRegister } from './item-register.js';
import { itemsIn } from './listing.js';
import type { Place } from './options.js';
import { probe } from './probe.js';
import { CLOCK_ERROR_MS, timeOf } from './time.js';
import { inWords } from './trouble.js';

export function storeOn(
  client: DynamodbClient,
  { table, layout, queue }: Place & { readonly queue: boolean },
): Store {
  const calls = callsOf(client);
  const register = itemRegister(calls, table, layout);
  const time = timeOf(client, () => askForTime());
  const swap = new CompareAndSwap(register, time, { name: 'DynamoDB', queue });

  const instances = layout.instancesOn?.({ calls, name: table, time, now: () => swap.now() });

  /** A key that no lock has, and next to nothing to bring back: half a read unit. */
  async function askForTime(): Promise<void> {
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
      throw inWords(error, table);
    }
  }

  async function viewsListed(query: ListQuery): Promise<readonly Snapshot[]> {
    const items = await itemsIn(calls, table, layout, query.prefix);
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
      yield* (await viewsListed(query)).slice(0, limit);
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
  vigilMs: null,
  metered: true,
};
