/** The PostgreSQL store. See store.ts for how it works, and migrate.ts for what has to be in the database first. */
import type { Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { databaseOn, type PostgresClient, type PostgresListener } from './clients.js';
import { checkSchema, SCHEMA } from './sql/names.js';
import { storeOn } from './store.js';

export type { PgLike, PostgresClient, PostgresJsLike, PostgresListener } from './clients.js';
export { type Migrated, type MigrateOptions, migrate, migrationSql } from './migrate.js';
export type { PgliteLike } from './pglite.js';
export type { ListenClient } from './wake-listener.js';

export interface PostgresStoreOptions {
  /** The schema that `migrate` created. Default `holdfast`. */
  readonly schema?: string;
  /**
   * How wake-ups are received, if not over a connection like the client's: a function that makes a new Client of pg, or
   * another `postgres(url)`. Use a direct connection where the client goes through a pooler in transaction mode. False:
   * no wake-ups.
   */
  readonly listener?: PostgresListener;
}

/**
 * Locks in PostgreSQL 13 or later. The client stays yours: close the store first, then the client. A Pool or Client of pg
 * emits `error` when an idle connection breaks: listen to it, or Node ends the process. A Pool opens new connections by
 * itself; a Client that lost its connection cannot be used any more.
 */
export function postgresStore(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  checkOptionNames(options, ['schema', 'listener']);
  const { schema = SCHEMA, listener } = options;
  return storeOn(databaseOn(client, listener), checkSchema(schema));
}
