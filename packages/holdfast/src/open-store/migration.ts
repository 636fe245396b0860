/** What has to be in a database before locks can be kept there: printed, or applied through a connection of its own. */
import { StoreError } from '../protocol/index.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { loadFirst } from './client-package.js';
import { type PostgresScheme, postgresTarget } from './postgres.js';
import { POSTGRES_CLIENTS } from './postgres-clients.js';
import { explain } from './trouble.js';

export interface MigrationOptions {
  /** Whether to grant what the Supabase store needs as well. */
  readonly supabase?: boolean;
}

export interface Migration {
  /** Where it goes. */
  readonly schema: string;
  /** All of it as SQL, for those who run their own migrations. May be run again. */
  readonly sql: string;
  /** Brings the schema to this version; from 0 when there was none. */
  apply(): Promise<{ readonly from: number; readonly to: number }>;
}

export async function postgresMigration(
  scheme: PostgresScheme,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  checkOptionNames(options, ['supabase']);
  const { target, schema } = await postgresTarget(scheme, rest);
  const { migrate, migrationSql } = await import('../stores/postgres/index.js');
  const { SCHEMA } = await import('../stores/postgres/sql/quoting.js');
  const wanted = { ...options, schema: schema ?? SCHEMA };
  return {
    schema: wanted.schema,
    sql: migrationSql(wanted),
    async apply() {
      const open = await loadFirst('PostgreSQL', POSTGRES_CLIENTS);
      // Another process may be migrating, and is waited for.
      const { client, connection } = open(target, { connections: 1, statementMsMax: null });
      try {
        return await migrate(client, wanted);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        const cause = explain(error.cause ?? error, connection.trouble(), connection.where);
        throw new StoreError(`nothing was migrated: ${cause.message}`, { operation: 'migrate', cause });
      } finally {
        await connection.end();
      }
    },
  };
}
