/** The PostgreSQL store. See store.ts for how it works, and migrate.ts for the schema that it needs. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { databaseOn, type PostgresClient, type PostgresListener } from './clients.js';
import { type PostgresLayout, placeOf } from './layout.js';
import { checkSchema, SCHEMA } from './sql/names.js';
import { storeOn } from './store.js';

export type { PgLike, PostgresClient, PostgresJsLike, PostgresListener } from './clients.js';
export type { PostgresLayout } from './layout.js';
export { type Migrated, type MigrateOptions, migrate, migrationSql } from './migrate.js';
export type { PgliteLike } from './pglite.js';
export type { ListenClient } from './wake-listener.js';

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /** The schema that `migrate` created. Default `holdfast`; with a layout, the schema of its table, default `public`. */
  readonly schema?: string;
  /**
   * Shares locks with other software, in rows of its table: a layout of `holdfast/postgres/layouts`. No wake-ups are
   * received then, and `listener` is refused. Default none.
   */
  readonly layout?: PostgresLayout;
  /** With a layout: the name of its table. Default `distributed_locks` or `locks`. */
  readonly table?: string;
  /**
   * How wake-ups are received: a function that makes a new Client of pg, or another `postgres(url)`. Use a direct
   * connection if the client goes through a pooler in transaction mode. False: no wake-ups. Default: one more connection,
   * made like those of the client.
   */
  readonly listener?: PostgresListener;
}

/**
 * Locks in PostgreSQL 13 or later. The client stays yours: close the store first, then the client. A Pool or Client of pg
 * emits `error` when an idle connection breaks: listen to it, or Node ends the process. A Pool opens new connections by
 * itself; a Client that lost its connection cannot be used any more.
 */
export function postgresStore(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  checkOptionNames(options, ['schema', 'listener', 'layout', 'table']);
  const { schema = SCHEMA, listener } = options;
  const place = placeOf(options);
  if (place) {
    if (listener === undefined || listener === false) {
      return place.layout.storeOn(databaseOn(client, false), place);
    }
    throw new InvalidArgumentError(
      `listener cannot be given with the layout "${place.layout.name}", which has no wake-ups.`,
    );
  }
  return storeOn(databaseOn(client, listener), checkSchema(schema));
}
