/** The SQLite store: locks for all processes of one machine. See store.ts for how it works. */
import { InvalidArgumentError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { loadDriver, type SqliteDatabase } from './database.js';
import { openFile } from './open.js';
import { type SqliteStore, storeOn } from './store.js';

export type { SqliteDatabase, SqliteStatement, SqliteValue } from './database.js';
export type { SqliteStore } from './store.js';

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /**
   * Whether a holder whose process is provably gone loses its locks before its ttl ends. Default true. Turn it off if this
   * process claims for others that may outlive it.
   */
  readonly liveness?: boolean;
}

/**
 * Locks in an SQLite file. Pass a path: the store opens the file, creates it and its folder (mode 0700) if missing, and
 * closes it. Or pass a `DatabaseSync` of your own, for this store alone, and close it yourself.
 */
export function sqliteStore(target: string | SqliteDatabase, options: SqliteStoreOptions = {}): SqliteStore {
  checkOptionNames(options, ['liveness']);
  const { liveness = true } = options;
  if (typeof liveness !== 'boolean') throw new InvalidArgumentError('liveness has to be true or false.');
  if (typeof target !== 'string' && typeof target?.prepare !== 'function') {
    throw new InvalidArgumentError('sqliteStore needs the path of a file, or a DatabaseSync.');
  }
  if (typeof target !== 'string') return storeOn(target, { liveness, closed: () => undefined });
  const database = openFile(target, loadDriver());
  try {
    return storeOn(database, { liveness, closed: () => database.close() });
  } catch (error) {
    database.close();
    throw error;
  }
}
