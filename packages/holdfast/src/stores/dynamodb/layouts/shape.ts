/**
 * A layout made of the shape of other software's items. The data that only Holdfast needs is stored beside its attributes:
 *
 *   holdfast        M  version, token, decision as numbers; `state` has holders and rests as JSON
 *   holdfastEnded   M  the marks (state-parts.ts); absent when there are none
 *   holdfastEvictions  S  JSON; absent when there are none
 *
 * An item is ours only while every attribute that the other software reads is what our state would write there; otherwise
 * it is a foreign hold.
 *
 * Every write is on the condition that all of these attributes are as seen. A released lock stays as an item that the other
 * software sees as expired long ago, with its token and marks.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Holder, type Rest, type State, UnsupportedError } from '../../../protocol/index.js';
import {
  checkPlainLock,
  type ForeignHold,
  foreignState,
  keyOfBareName,
  leavesForeign,
  occupantOf,
  ownPart,
} from '../../compare-and-swap/foreign.js';
import { type Aliases, type Item, isAbsent, text, textIn } from '../item.js';
import type { ForeignLayout, TableShape } from '../layout.js';
import { hasLowerNumbers, isOlder, marksIn, marksOf, numbersIn, numbersOf } from '../state-parts.js';

const NUMBERS = 'holdfast';
const MARKS = 'holdfastEnded';
const EVICTIONS = 'holdfastEvictions';

export interface Shape {
  readonly name: string;
  readonly table: TableShape;
  /** The attributes that the other software writes, beside the primary key. */
  readonly attributes: readonly string[];
  /** Those that it decides by. */
  readonly deciding: readonly string[];
  keyOf(key: string): Item;
  keyIn(item: Item): string | null;
  filter(aliases: Aliases, prefix: string): string;
  /** Its attributes while this holder has the lock. */
  held(occupant: Holder | Rest, key: string): Item;
  /** Its attributes after a release at that time: an expired lock. */
  free(sinceMs: number, key: string): Item;
  /** Values that only `free` writes. */
  readonly freeSigns: Item;
  /** The hold that the item stands for. Null for an item that is not a lock. */
  read(item: Item): ForeignHold | null;
}

export function layoutOf(shape: Shape): ForeignLayout {
  const { name, table } = shape;
  const versionAttributes = [...shape.attributes, NUMBERS, MARKS];
  const attributes = [...versionAttributes, EVICTIONS];
  const decode = (key: string, item: Item): State => stateIn(shape, key, item);
  return {
    store: 'dynamodb',
    name,
    table,
    keyOf: shape.keyOf,
    keyIn: (item) => (shape.read(item) ? shape.keyIn(item) : null),
    attributes,
    versionAttributes,
    encode(key, state, now, seen) {
      if (seen && leavesForeign(decode(key, seen), state, now)) return asSeen(seen, attributes);
      return { ...shapeOf(shape, key, state), ...ownAttributes(state) };
    },
    decode,
    ifFree: {
      keeps: [MARKS, EVICTIONS],
      condition(aliases, claim, next) {
        const signs = Object.entries(shape.freeSigns);
        const isFree = signs.map(([sign, value]) => `${aliases.name(sign)} = ${aliases.value(value)}`);
        const free = [...isFree, isOlder(aliases, pathOf(aliases), MARKS, claim, next)].join(' AND ');
        return `${isAbsent(aliases, table.partitionKey)} OR (${free})`;
      },
    },
    filter: shape.filter,
    check(command) {
      shape.keyOf(command.key);
      checkPlainLock(command, name);
    },
  };
}

function shapeOf(shape: Shape, key: string, state: State): Item {
  const occupant = occupantOf(state);
  return occupant ? shape.held(occupant, key) : shape.free(Math.floor(state.decision / 1_000), key);
}

function stateIn(shape: Shape, key: string, item: Item): State {
  const own = ownStateIn(item, key);
  if (own && isAsWritten(shape, key, item, own)) return own;
  const hold = shape.read(item);
  if (hold) return foreignState(hold, own ?? undefined);
  throw new UnsupportedError(
    `The item of "${key}" is not a lock of ${shape.name}: it needs ${shape.deciding.join(', ')}. ` +
      'Check the item, the table and the layout. Nothing was changed.',
    { key },
  );
}

function isAsWritten(shape: Shape, key: string, item: Item, state: State): boolean {
  const written = shapeOf(shape, key, state);
  return shape.deciding.every((name) => isDeepStrictEqual(item[name], written[name]));
}

function asSeen(seen: Item, attributes: readonly string[]): Item {
  return Object.fromEntries(Object.entries(seen).filter(([name]) => attributes.includes(name)));
}

export function ownAttributes(state: State): Item {
  const { holders, rests, ended, evictions, ...numbers } = ownPart(state);
  const own = { ...numbersOf(numbers), state: text(JSON.stringify({ holders, rests })) };
  return {
    [NUMBERS]: { M: own },
    ...(ended.length > 0 && { [MARKS]: marksOf(ended) }),
    ...(evictions.length > 0 && { [EVICTIONS]: text(JSON.stringify(evictions)) }),
  };
}

/** Null where the other software wrote the item. */
export function ownStateIn(item: Item, key: string): State | null {
  const own = item[NUMBERS]?.M ?? {};
  const lists = textIn(own, 'state');
  if (lists === undefined) return null;
  const numbers = numbersIn(own, key);
  const { holders, rests } = JSON.parse(lists) as Pick<State, 'holders' | 'rests'>;
  const evictions = JSON.parse(textIn(item, EVICTIONS) ?? '[]') as State['evictions'];
  return { ...numbers, holders, rests, waiters: [], ended: marksIn(item[MARKS]), evictions };
}

/** Paths to the numbers. */
function pathOf(aliases: Aliases): (name: string) => string {
  return (name) => `${aliases.name(NUMBERS)}.${aliases.name(name)}`;
}

/** A condition: our part is missing, or has lower numbers. */
export function isAbsentOrOlder(aliases: Aliases, next: number): string {
  return `(${isAbsent(aliases, NUMBERS)} OR (${hasLowerNumbers(aliases, pathOf(aliases), next, next)}))`;
}

export function beginsWith(aliases: Aliases, attribute: string, start: string): string {
  return `begins_with(${aliases.name(attribute)}, ${aliases.value(text(start))})`;
}

/** The prefix of names for a prefix of keys; '' where there is none. */
export function barePrefix(prefix: string): string {
  const start = keyOfBareName('');
  return prefix.startsWith(start) ? prefix.slice(start.length) : '';
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})$/;

export const LONG_AGO = '1970-01-01T00:00:00Z';

/**
 * RFC 3339 in whole seconds, rounded up. Other software compares such times as text, and drops zeros at the end of the
 * fraction: '…:05Z' then counts as later than '…:05.9Z' (F23). Whole seconds in UTC are always 20 characters, and compare
 * correctly or a moment too late with any of them, never too early.
 */
export function secondsUp(ms: number): string {
  return `${new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;
}

/** Any fraction, any zone; rounded up to milliseconds. Null for a text that is not a time. */
export function parseTime(text: string | undefined): number | null {
  const [, seconds, fraction = '', zone] = RFC3339.exec(text ?? '') ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(ms)) return null;
  return ms + Math.ceil(Number(`0.${fraction || '0'}`) * 1_000);
}
