/** The schema of a PostgreSQL database, made through a connection of its own. */
import { StoreError } from '../protocol/index.js';
import { loadFirst } from './client-package.js';
import type { Migration, MigrationOptions } from './migration.js';
import { type PostgresScheme, postgresTarget } from './postgres.js';
import { POSTGRES_CLIENTS } from './postgres-clients.js';
import { explain } from './trouble.js';

export async function postgresMigration(
  scheme: PostgresScheme,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  const { target, schema } = await postgresTarget(scheme, rest);
  const { migrate, migrationSql } = await import('../stores/postgres/index.js');
  const { SCHEMA } = await import('../stores/postgres/sql/quoting.js');
  const wanted = { ...options, schema: schema ?? SCHEMA };
  return {
    kind: 'schema',
    name: wanted.schema,
    script: migrationSql(wanted),
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
