/**
 * Locks in rows of a table that other software has. The data that only Holdfast needs is in one more column, `holdfast`,
 * which the other software does not name in its statements.
 *
 * A row is ours only while every column that the other software decides by is what our state would write there;
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

/** How long before it is expendable a released lock has expired: longer than any transaction of the other software. */
export const FREE_MS = 24 * 60 * 60 * 1_000;

/** The columns of a row but the key, as text. */
export type Row = Readonly<Record<string, string | null>>;

/** How a column is compared, and how it is read. Neither depends on the settings of the connection. */
export interface Column {
  readonly value: string;
  readonly text: string;
}

export const plainColumn = (name: string): Column => ({ value: `r.${name}`, text: `r.${name}::text` });
export const jsonColumn = (name: string): Column => ({ value: `r.${name}::jsonb`, text: `r.${name}::text` });
/** As a timestamp in UTC, which JSON has in one form only. */
export function timeColumn(name: string): Column {
  const value = `(r.${name} AT TIME ZONE 'UTC')`;
  return { value, text: value };
}

/** In all SQL, the row is `r`, and a new row is `n`. */
export interface TableLayout {
  readonly name: string;
  /** Its usual name. */
  readonly table: string;
  readonly keyColumn: string;
  /** The columns that the other software writes, beside the key. */
  readonly columns: Readonly<Record<string, Column>>;
  /** What is written over a row, where it is not `next` alone. */
  replacing?(next: Row, seen: Row): Row;
  /** The statements that create table and indexes; the table is quoted already. */
  create(table: string): string;
  /** The key of a row. */
  readonly keySql: string;
  /** Whether the holder of a row with our column is one of ours, and whether it is free. */
  readonly ownSql: string;
  readonly freeSql: string;
  /** Whether a row of ours is expendable. */
  readonly expendableSql: string;
  /** False for the key of a row that no lock can have. Default true. */
  isKey?(key: string): boolean;
  /** The value of the key column. Throws an `UnsupportedError` for a key that it cannot have. */
  nameOf(key: string): string;
  /** The columns while this holder has the lock. */
  held(occupant: Holder | Rest, key: string): Row;
  /** The same for a lock that expired at this time. */
  free(expiredMs: number, key: string): Row;
  /** The values that the other software decides by, comparable. */
  deciding(row: Row): readonly unknown[];
  /** The hold that a row stands for. Null for a row that is not a lock. */
  read(row: Row): ForeignHold | null;
  /** Where holders are instances, which may act without a hold: a row as LockServiceCentral's record, and back. */
  readonly instances?: { fieldsOf(row: Row): Fields; rowOf(fields: Fields): Row };
}

export function rowOf(layout: TableLayout, key: string, state: State): Row {
  const occupant = occupantOf(state);
  const shape = occupant
    ? layout.held(occupant, key)
    : layout.free(Math.max(expendableAt(state) - FREE_MS, 0), key);
  return { ...shape, [OWN]: JSON.stringify(storedPart(state)) };
}

/** What is in our column. Throws an `UnsupportedError` for a newer format. */
export function ownStateIn(key: string, text: string | null | undefined): State | null {
  return ownPartIn(JSON.parse(text ?? 'null'), key);
}

/** Throws an `UnsupportedError` for a row that is not a lock, or has a newer format. */
export function stateIn(layout: TableLayout, key: string, row: Row): State {
  const own = ownStateIn(key, row[OWN]);
  if (own && isDeepStrictEqual(layout.deciding(row), layout.deciding(rowOf(layout, key, own)))) return own;
  const hold = layout.read(row);
  if (hold) return foreignState(hold, own ?? EMPTY_STATE);
  throw new UnsupportedError(
    `The row of "${key}" is not a lock of ${layout.name}: a column that it decides by is empty. ` +
      'Check the row, the table and the layout. Nothing was changed.',
    { key },
  );
}
