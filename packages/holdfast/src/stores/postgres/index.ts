/** The PostgreSQL store. See store.ts for how it works, and migrate.ts for what has to be in the database first. */
import type { Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { databaseOn, type PostgresClient, type PostgresListener } from './clients.js';
import { checkSchema, SCHEMA } from './sql/names.js';
import { storeOn } from './store.js';

export type { PgLike, PostgresClient, PostgresJsLike, PostgresListener } from './clients.js';
export { type Migrated, type MigrateOptions, migrate, migrationSql } from './migrate.js';
export type { ListenClient } from './wake-listener.js';

export interface PostgresStoreOptions {
  /** Where `migrate` put its table and functions. `holdfast` unless told. */
  readonly schema?: string;
  /**
   * Where hints are heard, if not beside the client: a function that gives a new Client of pg, or another
   * `postgres(url)`; a direct connection where the client goes through a pooler in transaction mode. False: nowhere.
   */
  readonly listener?: PostgresListener;
}

/**
 * Locks in PostgreSQL 13 or later. The client stays yours: close the store first, then the client. A Pool or a Client of
 * pg has an event `error`, for connections that break while idle: listen to it, or Node ends the process. A Pool makes
 * new connections by itself; a Client that lost its own is of no more use.
 */
export function postgresStore(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  checkOptionNames(options, ['schema', 'listener']);
  const { schema = SCHEMA, listener } = options;
  return storeOn(databaseOn(client, listener), checkSchema(schema));
}
