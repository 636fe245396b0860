/**
 * Opens a database at a path. A read-only connection examines the file first: a refused file stays unchanged, byte for
 * byte.
 */
import { existsSync, mkdirSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { HoldfastError, InvalidArgumentError, StoreError, UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import {
  type OwnDatabase,
  PATIENT_MS,
  patiently,
  resultCode,
  SQLITE_BUSY,
  SQLITE_CANTOPEN,
  SQLITE_CORRUPT,
  SQLITE_NOTADB,
  SQLITE_READONLY,
  type SqliteDatabase,
  type SqliteDriver,
} from './database.js';
import { refuseOtherNames } from './file-names.js';
import { ensureSchema, hasSchema } from './schema.js';

const IN_MEMORY = ':memory:';
const NAMELESS = 'This database';

/** Larger files are not checked on opening; commands find their broken pages. */
const CHECKED_BYTES_MAX = 16 * 1024 * 1024;
/** Other processes may be opening the same new file: the switch to WAL fails while they read. */
const WAL_ATTEMPTS = 100;

export function openFile(path: string, Driver: SqliteDriver): OwnDatabase {
  if (path === IN_MEMORY) return new Driver(path);
  if (path === '') throw new InvalidArgumentError('The path of the SQLite file is empty.');
  return explained(path, () => {
    const file = resolve(path);
    const found = statSync(file, { throwIfNoEntry: false });
    if (found) refuse(file, found);
    else makeFolder(dirname(file));
    if (found && found.size > 0) inspect(file, found, Driver);
    return new Driver(file);
  });
}

/** One folder at a time: Node's recursive mode never returns if a folder cannot be made, as under /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have been first.
    if (!existsSync(folder)) throw error;
  }
}

function refuse(file: string, found: Stats): void {
  if (found.isDirectory()) throw new InvalidArgumentError(`${file} is a folder; a path to a file is needed.`);
  if (!found.isFile()) throw new InvalidArgumentError(`${file} is not a regular file.`);
  // Root may write every file, but a file without write permission is meant to stay unchanged.
  if ((found.mode & 0o222) === 0) throw readOnly(file);
  refuseOtherNames(file, found);
}

function inspect(file: string, found: Stats, Driver: SqliteDriver): void {
  const database = new Driver(file, { readOnly: true });
  try {
    database.exec(`PRAGMA busy_timeout = ${PATIENT_MS}`);
    hasSchema(database, file);
    if (found.size > CHECKED_BYTES_MAX) return;
    const { quick_check: verdict } = database.prepare('PRAGMA quick_check(1)').get() as {
      quick_check: string;
    };
    if (verdict !== 'ok') throw corrupt(file, verdict);
  } catch (error) {
    // Only a writer can roll back the work of a killed process: the real opening finds out.
    const code = resultCode(error);
    if (code !== SQLITE_READONLY && code !== SQLITE_CANTOPEN) throw error;
  } finally {
    database.close();
  }
}

/** Sets a connection up: busy timeout, WAL, tables. */
export function prepareDatabase(database: SqliteDatabase): { readonly file: string | null } {
  const list = database.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[];
  const file = list.find(({ name }) => name === 'main')?.file || null;
  const where = file ?? NAMELESS;
  return explained(file, () =>
    patiently(database, () => {
      if (file !== null) refuseOtherNames(file, statSync(file));
      // Before the switch to WAL, which already changes the file.
      hasSchema(database, where);
      keepLogAhead(database);
      database.exec('PRAGMA synchronous = NORMAL');
      ensureSchema(database, where);
      tryWriting(database);
      return { file };
    }),
  );
}

/** Checks now, not with the first claim, that the file can be written. Writes nothing. A busy file can be written. */
function tryWriting(database: SqliteDatabase): void {
  database.exec('PRAGMA busy_timeout = 0');
  try {
    database.exec('DELETE FROM holdfast_records WHERE 0');
  } catch (error) {
    if (resultCode(error) !== SQLITE_BUSY) throw error;
  }
}

function keepLogAhead(database: SqliteDatabase): void {
  for (let attempt = 1; ; attempt++) {
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode').get() as { journal_mode: string };
    if (mode === 'wal' || mode === 'memory') return;
    try {
      database.prepare('PRAGMA journal_mode = WAL').get();
      return;
    } catch (error) {
      if (resultCode(error) !== SQLITE_BUSY || attempt === WAL_ATTEMPTS) throw error;
      // Waits for other writers, which the switch itself does not.
      database.exec('BEGIN EXCLUSIVE; COMMIT');
    }
  }
}

/** Explains the problem of the file, and the remedy. */
export function explained<T>(file: string | null, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause;
    const where = file ?? NAMELESS;
    const isBusy = resultCode(cause) === SQLITE_BUSY;
    const text = isBusy
      ? 'was in use by another process for too long.'
      : `cannot be opened: ${messageOf(cause)}`;
    throw unusable(where, cause) ?? new StoreError(`${where} ${text}`, { operation: 'open', cause });
  }
}

/** The error for a file that can never be used; null for everything else. */
export function unusable(where: string, cause: unknown): HoldfastError | null {
  switch (resultCode(cause)) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return corrupt(where, messageOf(cause), cause);
    case SQLITE_READONLY:
      return readOnly(where, cause);
    case SQLITE_CANTOPEN:
      return new UnsupportedError(
        `${where} cannot be opened: its folder must be writable, and file handles left. (${messageOf(cause)})`,
        { cause },
      );
    default:
      return null;
  }
}

function readOnly(where: string, cause?: unknown): HoldfastError {
  const text = `${where} is read-only; locks need to write. Make it writable or use another file.`;
  return new UnsupportedError(text, { cause });
}

function corrupt(where: string, text: string, cause?: unknown): HoldfastError {
  return new UnsupportedError(
    `${where} is not an SQLite database, or a damaged one (${text}). Nothing was changed: move it away or use another file.`,
    { cause },
  );
}
