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
 *   ended           M  process → { n: the number of its last ended hold, until, at: its position }
 *   ttl             N  epoch seconds, two days after the last use. For clean-up only: nothing is decided by it
 */
import {
  type Claim,
  checkVersion,
  expendableAt,
  STATE_VERSION,
  type State,
  UnsupportedError,
} from '../../protocol/index.js';
import {
  type Aliases,
  type Item,
  isAbsent,
  isNotEnded,
  marksIn,
  marksOf,
  number,
  numberIn,
  text,
  textIn,
} from './item.js';
import type { Layout, TableShape } from './layout.js';

const LISTS = ['holders', 'rests', 'waiters'] as const;
const OWN = ['version', 'token', 'decision', ...LISTS, 'ended'] as const;

/** How long records are kept after their last use. DynamoDB may delete them days later. */
const KEPT_MS = 2 * 24 * 60 * 60 * 1_000;

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
    encode: (_key, state, now) => ({ ...encoded(state), [ttlAttribute]: number(ttlOf(state, now)) }),
    decode,
    versionAttributes: ['decision'],
    ifFree: {
      // Marks stay; and attributes that the condition requires to be absent need not be removed.
      keeps: ['rests', 'waiters', 'ended'],
      condition: (aliases, claim, next) => freeCondition(aliases, claim, next, partitionKey),
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

function ttlOf(state: State, now: number): number {
  return Math.ceil((Math.max(now, expendableAt(state)) + KEPT_MS) / 1_000);
}

function encoded(state: State): Item {
  const { version, token, decision, ended } = state;
  const item: Record<string, Item[string]> = {
    version: number(version),
    token: number(token),
    decision: number(decision),
  };
  for (const list of LISTS) if (state[list].length > 0) item[list] = text(JSON.stringify(state[list]));
  if (ended.length > 0) item.ended = marksOf(ended);
  return item;
}

function decode(key: string, item: Item): State {
  if (!isRecord(item)) {
    throw new UnsupportedError(
      `The item of "${key}" is not a lock of Holdfast. Use another table or another sort key, name the layout of the ` +
        'software that wrote it, or delete the item if nobody needs it. Nothing was changed.',
      { key },
    );
  }
  checkVersion(numberIn(item, 'version'), key);
  return {
    version: numberIn(item, 'version') ?? 0,
    token: numberIn(item, 'token') ?? 0,
    decision: numberIn(item, 'decision') ?? 0,
    holders: listIn(item, 'holders'),
    rests: listIn(item, 'rests'),
    waiters: listIn(item, 'waiters'),
    ended: marksIn(item.ended),
  };
}

function listIn<T>(item: Item, list: (typeof LISTS)[number]): readonly T[] {
  const json = textIn(item, list);
  return json === undefined ? [] : (JSON.parse(json) as readonly T[]);
}

/**
 * Absent, or free with lower numbers than the grant's. A late duplicate finds its own decision, or a higher one, and
 * fails; a claim that its withdrawal overtook finds the mark, and fails too.
 */
function freeCondition(aliases: Aliases, { hold }: Claim, next: State, partitionKey: string): string {
  const first = Math.min(next.token, ...next.holders.map(({ token }) => token));
  const free = [
    ...LISTS.map((list) => isAbsent(aliases, list)),
    `${aliases.name('token')} < ${aliases.value(number(first))}`,
    `${aliases.name('decision')} < ${aliases.value(number(next.decision))}`,
    isNotEnded(aliases, 'ended', hold),
    `${aliases.name('version')} <= ${aliases.value(number(STATE_VERSION))}`,
  ];
  return `${isAbsent(aliases, partitionKey)} OR (${free.join(' AND ')})`;
}
