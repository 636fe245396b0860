/** The little of SQLite that the store uses, where it comes from, and what its errors mean. Knows nothing of locks. */
// Under another name: bundles often declare `createRequire` themselves, for clients that need `require`.
import { createRequire as requireFrom } from 'node:module';
import { UnsupportedError } from '../../protocol/index.js';

export type SqliteValue = string | number | null;

export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): unknown;
}

/** What is used of a `DatabaseSync`, of `node:sqlite` or of `@photostructure/sqlite`. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): void;
}

/** One that this library opened and therefore closes. */
export interface OwnDatabase extends SqliteDatabase {
  close(): void;
}

export type SqliteDriver = new (path: string, options?: { readonly readOnly?: boolean }) => OwnDatabase;

const PACKAGE = '@photostructure/sqlite';

/** The runtime's own SQLite where there is one (Node from 22.13, Bun, Deno), else the package. Nothing is loaded before it is needed. */
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

/** SQLite's result codes, as far as they are told apart. */
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

/** Null when it is no error of SQLite. */
export function resultCode(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode & 0xff;
  // Deno gives some errors of SQLite no code but this one.
  if (!('code' in error) || error.code !== 'ERR_SQLITE_ERROR') return null;
  return MESSAGES.find(([start]) => error.message.startsWith(start))?.[1] ?? SQLITE_ERROR;
}

/** How long a command may wait for another process's transaction: the event loop stands still meanwhile. */
export const BUSY_MS = 50;
/** The same for what happens once and cannot be asked again: opening. */
export const PATIENT_MS = 5_000;

export function patiently<T>(database: SqliteDatabase, work: () => T): T {
  database.exec(`PRAGMA busy_timeout = ${PATIENT_MS}`);
  try {
    return work();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  }
}

/** All of it or nothing, and nobody else writes meanwhile. */
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

/** A full disk has rolled back already, and then there is nothing to roll back: both errors are worth knowing. */
function undo(database: SqliteDatabase, error: unknown): void {
  try {
    database.exec('ROLLBACK');
  } catch (second) {
    throw new AggregateError([error, second], error instanceof Error ? error.message : String(error));
  }
}
