/** The snapshots of a list: as many as were asked for; and in order, for engines without an order of keys. */
import { keysInOrder, type ListQuery, type Snapshot, type State, snapshotOf } from '../../protocol/index.js';

/** The first `limit` of them that are there. */
export async function* firstOf(
  all: AsyncIterable<Snapshot | null>,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<Snapshot> {
  let left = limit;
  if (left <= 0) return;
  for await (const one of all) {
    if (!one) continue;
    yield one;
    left -= 1;
    if (left <= 0) return;
  }
}

/** `stateOf` is called for the keys that the query asks for. */
export function listed(
  keys: Iterable<string>,
  query: ListQuery,
  now: number,
  stateOf: (key: string) => State | null,
): readonly Snapshot[] {
  const { limit = Number.POSITIVE_INFINITY } = query;
  return keysInOrder(keys, query)
    .flatMap((key): Snapshot | [] => snapshotOf(key, stateOf(key), now) ?? [])
    .slice(0, Math.max(0, limit));
}
