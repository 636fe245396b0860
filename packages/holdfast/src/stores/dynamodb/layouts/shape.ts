/**
 * Makes a layout of the shape of other software's items. Beside its attributes lie ours (own-part.ts). An item is ours
 * only while every attribute that the other software goes by is what our state would write there; otherwise the other
 * software has the last word, and what it says is a foreign hold.
 *
 * Every write is on the condition that all of these attributes are as they were seen, so nobody's lock is taken by a
 * look that is out of date. A released lock stays as an item that the other software sees as over long ago: its token
 * and marks are still there for the next claim.
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
} from '../../compare-and-swap/foreign.js';
import { type Aliases, isAbsent } from '../expressions.js';
import type { Layout, TableShape } from '../layout.js';
import { type Item, text } from '../values.js';
import { isOlder, OWN_ATTRIBUTES, OWN_KEPT, ownAttributes, ownStateIn } from './own-part.js';

/** What is no longer used is cleaned up so long after its last use, where the table has a TTL. */
export const KEPT_SECONDS = 2 * 24 * 60 * 60;

export interface Shape {
  readonly name: string;
  readonly table: TableShape;
  /** What the other software writes beside the primary key. */
  readonly attributes: readonly string[];
  /** Those of them that its decisions hang on. */
  readonly telling: readonly string[];
  keyOf(key: string): Item;
  keyIn(item: Item): string | null;
  filter(aliases: Aliases, prefix: string): string;
  /** What the other software has to see while this one holds. */
  held(occupant: Holder | Rest, key: string): Item;
  /** What it has to see after a release at that time: a lock that is over. */
  free(sinceMs: number, key: string): Item;
  /** What no item has but one that `free` wrote. */
  readonly freeSigns: Item;
  /** What it says itself. Null: this is no lock of it. */
  read(item: Item): ForeignHold | null;
}

export function layoutOf(shape: Shape): Layout {
  const { name, table } = shape;
  const attributes = [...shape.attributes, ...OWN_ATTRIBUTES];
  const decode = (key: string, item: Item): State => stateIn(shape, key, item);
  return {
    name,
    table,
    keyOf: shape.keyOf,
    keyIn: (item) => (shape.read(item) ? shape.keyIn(item) : null),
    attributes,
    witness: attributes,
    encode(key, state, now, seen) {
      if (seen && leavesForeign(decode(key, seen), state, now)) return asSeen(seen, attributes);
      return { ...shapeOf(shape, key, state), ...ownAttributes(state) };
    },
    decode,
    guess: {
      keeps: OWN_KEPT,
      condition(aliases, claim, next) {
        const signs = Object.entries(shape.freeSigns);
        const isFree = signs.map(([sign, value]) => `${aliases.name(sign)} = ${aliases.value(value)}`);
        const free = [...isFree, isOlder(aliases, claim, next)].join(' AND ');
        return `${isAbsent(aliases, table.partitionKey)} OR (${free})`;
      },
    },
    filter: (aliases, prefix) => shape.filter(aliases, prefix),
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
    `The item of "${key}" is no lock as ${shape.name} writes them: it needs ${shape.telling.join(', ')}. ` +
      'Look at the item, and mind which table and which layout this is. Nothing was changed.',
    { key },
  );
}

function isAsWritten(shape: Shape, key: string, item: Item, state: State): boolean {
  const written = shapeOf(shape, key, state);
  return shape.telling.every((name) => isDeepStrictEqual(item[name], written[name]));
}

function asSeen(seen: Item, attributes: readonly string[]): Item {
  return Object.fromEntries(Object.entries(seen).filter(([name]) => attributes.includes(name)));
}

export function beginsWith(aliases: Aliases, attribute: string, start: string): string {
  return `begins_with(${aliases.name(attribute)}, ${aliases.value(text(start))})`;
}

/** What names begin with for a prefix of keys; '' where that cannot be said. */
export function barePrefix(prefix: string): string {
  const start = keyOfBareName('');
  return prefix.startsWith(start) ? prefix.slice(start.length) : '';
}
