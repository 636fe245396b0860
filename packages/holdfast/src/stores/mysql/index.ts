/** The public names of the store for MySQL and MariaDB, and its options. See table.ts. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { sqlStore } from '../sql/sql-store.js';
import type { MysqlClient } from './client.js';
import { Database } from './database.js';
import { engineOf } from './probe.js';
import { explained } from './refusals.js';
import { mysqlTable, tableSql } from './table.js';

export type { MysqlCallbackClient, MysqlClient, MysqlConnection, MysqlPool } from './client.js';

/** Options of `mysqlStore`. */
export interface MysqlStoreOptions {
  /** The table, with its database if needed: 'locks' or 'jobs.locks'. Default 'holdfast'. */
  readonly table?: string;
}

/** The client is used as it is and never closed. The table has to exist: `createTable` creates it, once. */
export function mysqlStore(client: MysqlClient, options: MysqlStoreOptions = {}): Store {
  const table = mysqlTable(new Database(client), quotedTable(options));
  return sqlStore(table, { name: 'mysql', title: 'MySQL', queue: true });
}

/** Creates the table where it is missing. */
export async function createTable(
  client: MysqlClient,
  options: MysqlStoreOptions = {},
): Promise<{ readonly created: boolean }> {
  const table = quotedTable(options);
  const database = new Database(client);
  if ((await explained(table, engineOf(database, table))) !== null) return { created: false };
  await explained(table, database.change(tableSql(table)));
  return { created: true };
}

/** The statement that `createTable` runs. */
export function createTableSql(options: MysqlStoreOptions = {}): string {
  return tableSql(quotedTable(options));
}

function quotedTable(options: MysqlStoreOptions): string {
  checkOptionNames(options, ['table']);
  const { table = 'holdfast' } = options;
  if (typeof table !== 'string' || !/^(?:[\w$]{1,64}\.)?[\w$]{1,64}$/.test(table)) {
    throw new InvalidArgumentError(
      'The name of a table consists of letters, digits, "_" and "$", with its database before a dot if needed.',
    );
  }
  return `\`${table.replace('.', '`.`')}\``;
}
