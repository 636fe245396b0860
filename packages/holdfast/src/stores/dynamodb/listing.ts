/**
 * Which locks there are. DynamoDB has no order over partition keys, so this looks at every item of the table, whatever
 * the prefix: a scan of n KB costs n / 4 read units and a call a megabyte. For people and for repair, not for each
 * request.
 */
import type { Calls } from './client.js';
import { Aliases } from './expressions.js';
import type { Layout } from './layout.js';
import { inWords } from './trouble.js';
import type { Item } from './values.js';

/** The items of locks that begin with this, by their key. */
export async function itemsIn(
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
    throw inWords(error, table);
  }
}
