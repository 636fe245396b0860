/** How a lock is stored in an item: all that differs between Holdfast's own records and those of other software. */
import type { Claim, Command, InstanceLocks, State } from '../../protocol/index.js';
import type { Reading, StoreTime } from '../compare-and-swap/register.js';
import type { Aliases, Item } from './item.js';
import type { Items } from './items.js';

/** The table that a layout needs. */
export interface TableShape {
  /** All of type S. */
  readonly partitionKey: string;
  readonly sortKey: string | null;
  /** The attribute of the table's time to live, in epoch seconds. Null where there is none. */
  readonly ttlAttribute: string | null;
}

/**
 * A condition for a claim on a key that was not read: any free record will do. It grants a free key in one call; written
 * per layout, because it is an expression over the layout's attributes.
 */
export interface FreeCondition {
  /** Attributes of the layout that the write leaves as they are. */
  readonly keeps: readonly string[];
  /**
   * Holds where this claim may be granted with `next`, which was decided on an absent record: the key is absent, or free
   * with lower numbers, and no mark says that the hold has ended.
   */
  condition(aliases: Aliases, claim: Claim, next: State): string;
}

/** Other software whose items the store can use. `holdfast/dynamodb/layouts` exports all that there are. */
export interface DynamodbLayout {
  readonly store: 'dynamodb';
  /** As in URLs: `?layout=single-table`. */
  readonly name: string;
}

export type ForeignLayout = Layout & DynamodbLayout;

export interface Layout {
  /** For messages. */
  readonly name: string;
  readonly table: TableShape;
  /** The primary key of a lock's item. Injective. */
  keyOf(key: string): Item;
  /** The key of an item's lock; null for another item of the same table. */
  keyIn(item: Item): string | null;
  /** All attributes that it writes, beside the primary key. Those that `encode` leaves out are removed. */
  readonly attributes: readonly string[];
  /**
   * The attributes of a state, without the primary key. `seen`: the item that is replaced, so that attributes of other
   * software can be kept exactly. `now`: the latest time possible.
   */
  encode(key: string, state: State, now: number, seen: Item | null): Item;
  /** Throws an `UnsupportedError` for an item that is not a lock, or has a newer format. */
  decode(key: string, item: Item): State;
  /**
   * The attributes that tell one record from every other that this key ever had. A write happens only while they are
   * as seen: equal, or absent.
   */
  readonly versionAttributes: readonly string[];
  readonly ifFree: FreeCondition;
  /** A filter for scans: less data, at the same price. */
  filter(aliases: Aliases, prefix: string): string;
  /** Throws an `UnsupportedError` for a command that an item of this layout cannot store. */
  check?(command: Command): void;
  /** For a layout whose holders are instances, which may act without a hold. */
  instancesOn?(table: TimedTable): InstanceLocks;
}

/** A table and its time. */
export interface TimedTable {
  readonly items: Items;
  readonly time: StoreTime;
  /** The store's time; asks the store where it is not known. */
  now(): Promise<Reading>;
}
