/**
 * What a table of an SQL database has to offer, so that `sqlStore` makes a store of it.
 *
 * 1. Write the statements of the table as a `SqlTable<V>`. `V` is what a row is compared by: a version column, or the columns as they were seen, where other software writes the rows, too.
 * 2. Every statement returns the database's own time with its result, in the same round trip, as `Timed`.
 * 3. `sqlStore(table, options)` does the rest: the clock, the decisions, the cache, lists, clean-up and closing.
 *
 * `replace` is one statement, on the condition that the row is still `seen`. A rejection means that the outcome is unknown;
 * throw a `NotExecutedError` where it is known that nothing was executed.
 */
import type { Claim, Command, Guarantees, InstanceLocks, State } from '../../protocol/index.js';
import type { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import type { Found, StoreTime, Written } from '../compare-and-swap/register.js';

/** A reply of the database. */
export interface Timed<T> {
  readonly value: T;
  /** Its time at some moment of the statement, in milliseconds with fractions; null where the reply has none. */
  readonly atMs: number | null;
}

export interface KeyedState {
  readonly key: string;
  /** Null for a row that is no lock. Throws for a newer format, which must not hide the rows before it in a list. */
  state(): State | null;
}

export interface SqlTable<V> {
  /** The record of a key without a row. */
  readonly absent: Found<V>;
  /** The committed row, whatever the isolation level. */
  read(key: string): Promise<Timed<Found<V>>>;
  /** Replaces the row, or inserts it where `seen` is `absent`. `now`: the latest time possible. */
  replace(key: string, next: State, seen: Found<V>, now: number): Promise<Timed<Written<V>>>;
  /** As `Register.take`: grants a claim on any free row, where one statement can compare marks and return the row. */
  take?(claim: Claim, next: State, now: number): Promise<Timed<Written<V>>>;
  /** Up to `rows` rows whose keys begin with `prefix` and sort after `after`, in the order of `compareKeys`. */
  page(prefix: string, after: string | null, rows: number): Promise<Timed<readonly KeyedState[]>>;
  /** The time alone. */
  time(): Promise<Timed<null>>;
  /** Deletes up to `rows` rows that are expendable by the database's own clock; resolves with how many. */
  cleanUp(rows: number): Promise<number>;
  /** Throws an `UnsupportedError` for a command that a row cannot store. */
  check?(command: Command): void;
  probe(): Promise<Pick<Guarantees, 'server' | 'findings'>>;
  /** Locks by instance, for the records of LockServiceCentral. */
  instancesOn?(store: TableStore): InstanceLocks;
}

/** The parts of a store that its table may use. */
export interface TableStore {
  readonly time: StoreTime;
  readonly swap: Pick<CompareAndSwap<never>, 'now' | 'checkOpen'>;
  /** Runs a statement, and learns the time from its reply. */
  timed<T>(statement: () => Promise<Timed<T>>): Promise<T>;
}
