/** `mysql://` and `mariadb://`: the store on a pool of its own, and the migration of its table. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { createdOnce, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, storeOn } from '../clients/opened-client.js';
import { TLS_OPTIONS, tlsOf } from '../clients/tls.js';
import { given, parseServerUrl } from '../clients/url.js';
import { createTable, createTableSql, type MysqlStoreOptions, mysqlStore } from './index.js';
import { MYSQL_CLIENTS, type Target } from './open-client.js';

const PORT = 3306;

export async function openStore(scheme: string, rest: string, clients = MYSQL_CLIENTS): Promise<Store> {
  const { target, options } = await mysqlTarget(scheme, rest);
  return storeOn((await loadFirst('MySQL', clients))(target), (client) => mysqlStore(client, options));
}

export async function migrationOf(scheme: string, rest: string, asked: MigrationOptions): Promise<Migration> {
  refuseOptions(asked, ['supabase', 'timeToLive'], scheme);
  const { target, options } = await mysqlTarget(scheme, rest);
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

async function mysqlTarget(
  scheme: string,
  rest: string,
): Promise<{ readonly target: Target; readonly options: MysqlStoreOptions }> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
  const url = parseServerUrl(scheme, rest, form, ['table', ...TLS_OPTIONS]);
  const [address, ...others] = url.addresses;
  if (others.length > 0) {
    throw new InvalidArgumentError(`${scheme}: takes one host: the primary, or a name that follows it.`);
  }
  const host = address?.host || 'localhost';
  const tls = (await tlsOf(url.options, host)) || null;
  const options = given({ table: url.options.get('table') });
  // The name of the table is checked before anything is opened.
  createTableSql(options);
  return {
    target: {
      ...given({
        user: url.user ?? undefined,
        password: url.password ?? undefined,
        database: url.path || undefined,
      }),
      host,
      port: address?.port ?? PORT,
      tls,
    },
    options,
  };
}
