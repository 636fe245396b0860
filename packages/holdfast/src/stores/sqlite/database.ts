/** The part of SQLite that the store uses, its loading, and the meaning of its errors. Knows nothing of locks. */
// Under another name: bundles often declare `createRequire` themselves, for clients that need `require`.
import { createRequire as requireFrom } from 'node:module';
import { UnsupportedError } from '../../protocol/index.js';
import { isError } from '../../protocol/is-error.js';

/** A value for a statement. */
export type SqliteValue = string | number | null;

/** A prepared statement of a `SqliteDatabase`. */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): unknown;
}

/** The members used of a `DatabaseSync`, of `node:sqlite` or of `@photostructure/sqlite`. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): void;
}

/** A database that this library opened and therefore closes. */
export interface OwnDatabase extends SqliteDatabase {
  close(): void;
}

export type SqliteDriver = new (path: string, options?: { readonly readOnly?: boolean }) => OwnDatabase;

const PACKAGE = '@photostructure/sqlite';

/** The runtime's own SQLite if there is one (Node from 22.13, Bun, Deno), else the package. Loaded on demand. */
export function loadDriver(require: (name: string) => unknown = requireFrom(import.meta.url)): SqliteDriver {
  const builtin = process.getBuiltinModule?.('node:sqlite') as { DatabaseSync: SqliteDriver } | undefined;
  return builtin?.DatabaseSync ?? loadPackage(require);
}

export function loadPackage(require: (name: string) => unknown): SqliteDriver {
  try {
    return (require(PACKAGE) as { DatabaseSync: SqliteDriver }).DatabaseSync;
  } catch (cause) {
    throw new UnsupportedError(
      `This runtime has no SQLite of its own, as Node has from 22.13 on, and the package for it cannot be loaded: npm install ${PACKAGE}`,
      { cause },
    );
  }
}

/** Options of a connection that a statement can change. */
interface FormedStatement extends SqliteStatement {
  setReadBigInts?(yes: boolean): unknown;
  setReturnArrays?(yes: boolean): unknown;
}

/** The same database with plain rows, even if the options of the user's connection say otherwise. */
export function withPlainRows(database: SqliteDatabase): SqliteDatabase {
  return {
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      const statement: FormedStatement = database.prepare(sql);
      statement.setReadBigInts?.(false);
      statement.setReturnArrays?.(false);
      return statement;
    },
  };
}

/** The result codes of SQLite that this store distinguishes. */
const SQLITE_ERROR = 1;
export const SQLITE_BUSY = 5;
export const SQLITE_READONLY = 8;
export const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_CANTOPEN = 14;
export const SQLITE_NOTADB = 26;

/** The beginnings of SQLite's own messages. */
const MESSAGES: readonly (readonly [string, number])[] = [
  ['database is locked', SQLITE_BUSY],
  ['attempt to write a readonly database', SQLITE_READONLY],
  ['database disk image is malformed', SQLITE_CORRUPT],
  ['unable to open database file', SQLITE_CANTOPEN],
  ['file is not a database', SQLITE_NOTADB],
];

/** Null for errors that are not SQLite's. */
export function resultCode(error: unknown): number | null {
  if (!isError(error)) return null;
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  // Deno gives some errors of SQLite this code only.
  if (!('code' in error) || error.code !== 'ERR_SQLITE_ERROR') return null;
  return MESSAGES.find(([start]) => error.message.startsWith(start))?.[1] ?? SQLITE_ERROR;
}

/** Whether the connection had been closed, so that nothing was executed. */
export const isClosed = (error: unknown): boolean =>
  isError(error) && 'code' in error && error.code === 'ERR_INVALID_STATE';

/** How long a command may wait for another process's transaction: the event loop is blocked meanwhile. */
export const BUSY_MS = 50;
/** The same for opening, which happens once and is not retried. */
export const PATIENT_MS = 5_000;

export function patiently<T>(database: SqliteDatabase, work: () => T): T {
  database.exec(`PRAGMA busy_timeout = ${PATIENT_MS}`);
  try {
    return work();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  }
}

/** An atomic transaction without other writers. */
export function immediately<T>(database: SqliteDatabase, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    undo(database, error);
    throw error;
  }
}

/** SQLite may have undone the transaction by itself, as on a full disk. Other rollback failures are reported, too. */
function undo(database: SqliteDatabase, error: unknown): void {
  try {
    database.exec('ROLLBACK');
  } catch (second) {
    if (isError(second) && second.message.includes('no transaction is active')) return;
    throw new AggregateError([error, second], error instanceof Error ? error.message : String(error));
  }
}
