/**
 * Locks in rows of a table of other software. The data that only Holdfast needs is in one more column, `holdfast`, which
 * the other software does not name in its statements.
 *
 * A row is ours only while every column by which the other software decides has the value that our state would write;
 * otherwise it is a foreign hold. A released lock stays as a row that expired a day before it is expendable: its token and
 * marks are there for the next claim, and the index on the expiry finds it for clean-up.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  EMPTY_STATE,
  expendableAt,
  type Holder,
  type Rest,
  type State,
  UnsupportedError,
} from '../../../protocol/index.js';
import {
  type ForeignHold,
  foreignState,
  occupantOf,
  ownPartIn,
  storedPart,
} from '../../compare-and-swap/foreign.js';
import { OWN_PREFIX } from '../../compare-and-swap/lock-service-central.js';
import type { Fields } from '../../compare-and-swap/records.js';

/** The column that Holdfast adds. */
export const OWN = 'holdfast';
/** Matches the texts of `secretOf`, and `FREE`, in SQL: other software may have names with the same beginning. */
export const OWN_SHAPE = `${OWN_PREFIX}([0-9a-f]{40}|rest-[0-9]+|free)`;

/** How long before it is expendable a released lock expires: longer than any transaction of the other software. */
export const FREE_MS = 24 * 60 * 60 * 1_000;

/** The columns of a row, as JSON gives them. */
export type Row = Readonly<Record<string, unknown>>;

/** In all SQL, the row is `r`, and a new row is `n`. */
export interface TableLayout {
  readonly name: string;
  /** Its usual name. */
  readonly table: string;
  readonly keyColumn: string;
  /** The columns that the other software writes, beside the key, with the SQL that reads each. */
  readonly columns: Readonly<Record<string, string>>;
  /** Columns that get another value when a row is replaced. */
  readonly replaced: Readonly<Record<string, string>>;
  /** The statements that create table and indexes; the table is quoted already. */
  create(table: string): string;
  /** The key of a row. */
  readonly keySql: string;
  /** Whether the holder of a row with our column is one of ours, and whether it is free. */
  readonly ownSql: string;
  readonly freeSql: string;
  /** Whether a row of ours is expendable. */
  readonly expendableSql: string;
  /** False for a row whose key no lock can have. Default true. */
  isKey?(key: string): boolean;
  /** The value of the key column. Throws an `UnsupportedError` for a key that does not fit. */
  nameOf(key: string): string;
  /** The key column and the others while this holder has the lock. */
  held(occupant: Holder | Rest, key: string): Row;
  /** The same for a lock that expired at this time. */
  free(expiredMs: number, key: string): Row;
  /** The values by which the other software decides, in comparable form. */
  deciding(row: Row): readonly unknown[];
  /** The hold that a row stands for. Null for a row that is not a lock. */
  read(row: Row): ForeignHold | null;
  /** If holders are instances, which may act without a hold: a row as LockServiceCentral's record, and back. */
  readonly instances?: { fieldsOf(row: Row): Fields; rowOf(key: string, fields: Fields): Row };
}

export function rowOf(layout: TableLayout, key: string, state: State): Row {
  const occupant = occupantOf(state);
  const shape = occupant
    ? layout.held(occupant, key)
    : layout.free(Math.max(expendableAt(state) - FREE_MS, 0), key);
  return { ...shape, [OWN]: storedPart(state) };
}

/** Throws an `UnsupportedError` for a row that is not a lock, or has a newer format. */
export function stateIn(layout: TableLayout, key: string, row: Row): State {
  const own = ownPartIn(row[OWN], key);
  if (own && isDeepStrictEqual(layout.deciding(row), layout.deciding(rowOf(layout, key, own)))) return own;
  const hold = layout.read(row);
  if (hold) return foreignState(hold, own ?? EMPTY_STATE);
  throw new UnsupportedError(
    `The row of "${key}" is not a lock of ${layout.name}: a column that it decides by is empty. ` +
      'Check the row, the table and the layout. Nothing was changed.',
    { key },
  );
}
