/** How a lock lies in an item: the one thing that differs between Holdfast's own records and those of other software. */
import type { Claim, Command, InstanceLocks, State } from '../../protocol/index.js';
import type { Reading, StoreTime } from '../compare-and-swap/register.js';
import type { Calls } from './client.js';
import type { Aliases } from './expressions.js';
import type { Item } from './values.js';

/** The table that a layout lives in. */
export interface TableShape {
  /** All of type S. */
  readonly partitionKey: string;
  readonly sortKey: string | null;
  /** The attribute by which DynamoDB deletes what nobody needs: a number of seconds. Null where there is none. */
  readonly ttlAttribute: string | null;
}

/** A write that holds on more than one state of a record, so that a claim needs to know nothing first. */
export interface Guess {
  /** Attributes of the layout that are left as they are, whatever they are. */
  readonly keeps: readonly string[];
  /**
   * When this claim may be granted with `next`, which was decided on an absent record: the key is absent, or free with
   * lower numbers, and nothing marks the hold as ended.
   */
  condition(aliases: Aliases, claim: Claim, next: State): string;
}

export interface Layout {
  /** For messages. */
  readonly name: string;
  readonly table: TableShape;
  /** The primary key of a lock's item. Injective. */
  keyOf(key: string): Item;
  /** The lock's key that an item belongs to; null when it is something else that lies in the same table. */
  keyIn(item: Item): string | null;
  /** All that it writes, beside the primary key. What `encode` leaves out of these is removed. */
  readonly attributes: readonly string[];
  /**
   * The attributes of a state, without the primary key. `seen` is what was there, so that what
   * another software wrote can be kept word by word. `now` is the latest it may be.
   */
  encode(key: string, state: State, now: number, seen: Item | null): Item;
  /** Throws an `UnsupportedError` for a record that this library cannot know. */
  decode(key: string, item: Item): State;
  /**
   * The attributes that tell one record from every other that this key ever had. A write happens only while they are
   * as they were seen: equal, or absent as before.
   */
  readonly witness: readonly string[];
  /** Where there is none, a claim's guess is that the item is absent. */
  readonly guess?: Guess;
  /** A condition on what a scan brings: less to carry, at the same price. */
  filter?(aliases: Aliases, prefix: string): string;
  /** Throws an `UnsupportedError` for what an item of this layout cannot carry. */
  check?(command: Command): void;
  /** Where the holders of its items are instances, and may act without a hold. */
  instancesOn?(table: TimedTable): InstanceLocks;
}

/** A table, the calls that reach it, and its time. */
export interface TimedTable {
  readonly calls: Calls;
  readonly name: string;
  readonly time: StoreTime;
  /** The time now; asks for it where nothing is known. */
  now(): Promise<Reading>;
}
