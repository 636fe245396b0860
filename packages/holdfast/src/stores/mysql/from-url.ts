/** `mysql://` and `mariadb://`: the store on a pool of its own, and the migration of its table. */
import type { Store } from '../../protocol/index.js';
import { type DatabaseTarget, databaseTarget } from '../clients/database-url.js';
import { createdOnce, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, storeOn } from '../clients/opened-client.js';
import { given } from '../clients/url.js';
import { createTable, createTableSql, type MysqlStoreOptions, mysqlStore } from './index.js';
import { MYSQL_CLIENTS } from './open-client.js';

const PORT = 3306;

export async function openStore(scheme: string, rest: string, clients = MYSQL_CLIENTS): Promise<Store> {
  const target = await databaseTarget(scheme, rest, PORT, ['table']);
  const options = optionsIn(target);
  return storeOn((await loadFirst('MySQL', clients))(target), (client) => mysqlStore(client, options));
}

export async function migrationOf(scheme: string, rest: string, asked: MigrationOptions): Promise<Migration> {
  refuseOptions(asked, ['supabase', 'timeToLive'], scheme);
  const target = await databaseTarget(scheme, rest, PORT, ['table']);
  const options = optionsIn(target);
  return {
    kind: 'table',
    name: options.table ?? 'holdfast',
    script: `${createTableSql(options)};\n`,
    apply: async () =>
      migrateOn((await loadFirst('MySQL', MYSQL_CLIENTS))(target), 'the table was not made', async (client) =>
        createdOnce((await createTable(client, options)).created),
      ),
  };
}

/** The name of the table is checked before anything is opened. */
function optionsIn({ options }: DatabaseTarget): MysqlStoreOptions {
  const found = given({ table: options.get('table') });
  createTableSql(found);
  return found;
}
