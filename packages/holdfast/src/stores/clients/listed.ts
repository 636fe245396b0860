/**
 * The snapshots of a list: as many as were asked for; and in order, for engines without an order of keys.
 *
 * A record that cannot be read, such as one of a newer format, ends the list with its error. It must not hide the keys
 * before it, so every record is decoded when its turn comes.
 */
import { keysInOrder, type ListQuery, type Snapshot, type State, snapshotOf } from '../../protocol/index.js';

/** The first `limit` of them that are there. */
export async function* firstOf(
  all: AsyncIterable<Snapshot | null> | Iterable<Snapshot | null>,
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

/** Of records by their keys. `stateOf` is called for those that the query asks for. */
export function listed<T>(
  records: ReadonlyMap<string, T>,
  query: ListQuery,
  now: number,
  stateOf: (key: string, record: T) => State | null,
): AsyncGenerator<Snapshot> {
  function* snapshots(): Generator<Snapshot | null> {
    for (const key of keysInOrder(records.keys(), query)) {
      yield snapshotOf(key, stateOf(key, records.get(key) as T), now);
    }
  }
  return firstOf(snapshots(), query.limit);
}

/** Reads these keys, so many at once. */
export async function* readInOrder(
  keys: readonly string[],
  atOnce: number,
  read: (key: string) => Promise<Snapshot | null>,
): AsyncGenerator<Snapshot | null> {
  for (let from = 0; from < keys.length; from += atOnce) {
    const page = keys.slice(from, from + atOnce).map(read);
    // One that fails before its turn is no unhandled rejection.
    void Promise.allSettled(page);
    for (const one of page) yield await one;
  }
}
