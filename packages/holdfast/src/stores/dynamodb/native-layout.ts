/**
 * Holdfast's own item, one per key.
 *
 *   partition key   S  the lock's key: keys are short, and DynamoDB compares them byte by byte
 *   sort key        S  the same text for every lock, in tables that have one
 *   version         N  the format
 *   token           N  the highest token reserved
 *   decision        N  rises with every write, so it identifies this record
 *   holders         S  JSON; absent when there are none, like the next two, so that `ifFree` can test for that
 *   rests           S  JSON
 *   waiters         S  JSON
 *   evictions       S  JSON; absent when there are none
 *   ended           M  process → { n: the number of its last ended hold, until, at: its position }
 *   ttl             N  epoch seconds, two days after the last use. For clean-up only: nothing is decided by it
 */
import { expendableAt, type State, UnsupportedError } from '../../protocol/index.js';
import { type Item, isAbsent, numberIn, text, textIn } from './item.js';
import type { Layout, TableShape } from './layout.js';
import { isOlder, marksIn, marksOf, numbersIn, numbersOf, timeToLive } from './state-parts.js';

const LISTS = ['holders', 'rests', 'waiters'] as const;
const OWN = ['version', 'token', 'decision', ...LISTS, 'evictions', 'ended'] as const;

export interface NativeNames {
  readonly partitionKey: string;
  /** Its value is the same for every lock. */
  readonly sortKey: { readonly name: string; readonly value: string } | null;
  readonly ttlAttribute: string;
}

export const NATIVE = 'holdfast';

/** Names that the options cannot give to other attributes. */
export const RESERVED: readonly string[] = OWN;

export function nativeLayout({ partitionKey, sortKey, ttlAttribute }: NativeNames): Layout {
  const table: TableShape = { partitionKey, sortKey: sortKey?.name ?? null, ttlAttribute };
  return {
    name: NATIVE,
    table,
    keyOf: (key) => ({
      [partitionKey]: text(key),
      ...(sortKey && { [sortKey.name]: text(sortKey.value) }),
    }),
    keyIn(item) {
      const isOurs = !sortKey || textIn(item, sortKey.name) === sortKey.value;
      return isOurs && isRecord(item) ? (textIn(item, partitionKey) ?? null) : null;
    },
    attributes: [...OWN, ttlAttribute],
    encode: (_key, state, now) => ({
      ...encoded(state),
      [ttlAttribute]: timeToLive(Math.max(now, expendableAt(state))),
    }),
    decode,
    versionAttributes: ['decision'],
    ifFree: {
      // Marks and evictions stay; and attributes that the condition requires to be absent need not be removed.
      keeps: ['rests', 'waiters', 'evictions', 'ended'],
      condition(aliases, claim, next) {
        const free = [
          ...LISTS.map((list) => isAbsent(aliases, list)),
          isOlder(aliases, (name) => aliases.name(name), 'ended', claim, next),
        ];
        return `${isAbsent(aliases, partitionKey)} OR (${free.join(' AND ')})`;
      },
    },
    filter(aliases, prefix) {
      const inUse = LISTS.map((list) => `attribute_exists(${aliases.name(list)})`).join(' OR ');
      const parts = [`(${inUse})`];
      if (prefix !== '')
        parts.push(`begins_with(${aliases.name(partitionKey)}, ${aliases.value(text(prefix))})`);
      if (sortKey) parts.push(`${aliases.name(sortKey.name)} = ${aliases.value(text(sortKey.value))}`);
      return parts.join(' AND ');
    },
  };
}

function isRecord(item: Item): boolean {
  return numberIn(item, 'version') !== undefined && numberIn(item, 'decision') !== undefined;
}

function encoded(state: State): Item {
  const lists = ([...LISTS, 'evictions'] as const).filter((list) => state[list].length > 0);
  return {
    ...numbersOf(state),
    ...Object.fromEntries(lists.map((list) => [list, text(JSON.stringify(state[list]))])),
    ...(state.ended.length > 0 && { ended: marksOf(state.ended) }),
  };
}

function decode(key: string, item: Item): State {
  if (!isRecord(item)) {
    throw new UnsupportedError(
      `The item of "${key}" is not a lock of Holdfast. Use another table or another sort key, name the layout of the ` +
        'software that wrote it, or delete the item if it is not needed. Nothing was changed.',
      { key },
    );
  }
  return {
    ...numbersIn(item, key),
    holders: listIn(item, 'holders'),
    rests: listIn(item, 'rests'),
    waiters: listIn(item, 'waiters'),
    ended: marksIn(item.ended),
    evictions: listIn(item, 'evictions'),
  };
}

function listIn<T>(item: Item, list: (typeof OWN)[number]): readonly T[] {
  const json = textIn(item, list);
  return json === undefined ? [] : (JSON.parse(json) as readonly T[]);
}
