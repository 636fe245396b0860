/** The schema of a PostgreSQL database, made through a connection of its own. */
import { StoreError } from '../protocol/index.js';
import { explain } from '../stores/clients/errors.js';
import { loadFirst } from './client-package.js';
import { type Migration, type MigrationOptions, refuseOptions } from './migration.js';
import { type PostgresScheme, postgresTarget } from './postgres.js';
import { POSTGRES_CLIENTS } from './postgres-clients.js';

const SUPABASE_RIGHTS =
  'Rights on these tables and functions were given to service_role, and taken from anon, authenticated and PUBLIC.';

export async function postgresMigration(
  scheme: PostgresScheme,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  refuseOptions(options, ['timeToLive'], scheme);
  const { target, schema } = await postgresTarget(scheme, rest);
  const { migrate, migrationSql } = await import('../stores/postgres/index.js');
  const { SCHEMA } = await import('../stores/postgres/sql/quoting.js');
  const wanted = { supabase: options.supabase ?? false, schema: schema ?? SCHEMA };
  return {
    kind: 'schema',
    name: wanted.schema,
    script: migrationSql(wanted),
    async apply() {
      const open = await loadFirst('PostgreSQL', POSTGRES_CLIENTS);
      // Another process may be migrating, and is waited for.
      const { client, connection } = open(target, { connections: 1, statementMsMax: null });
      try {
        return { ...(await migrate(client, wanted)), notes: wanted.supabase ? [SUPABASE_RIGHTS] : [] };
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
