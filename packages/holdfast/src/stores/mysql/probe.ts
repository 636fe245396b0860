/** Findings about this server as it is configured, in sentences for users. */
import type { Guarantees } from '../../protocol/index.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { Database } from './database.js';

/** Not every server has all of them. */
const VARIABLES =
  'version version_comment read_only innodb_read_only log_bin sync_binlog innodb_flush_log_at_trx_commit wsrep_on wsrep_sync_wait';
const FORGETS =
  'the grants of the last moments, and another may get the same lock. Its token is still higher';

/** The storage engine of the table; null where there is no such table. `table` is quoted. */
export async function engineOf(database: Database, table: string): Promise<string | null> {
  const [name, schema] = table.replaceAll('`', '').split('.').reverse();
  const [row] = await database.rows(
    'SELECT @@autocommit AS autocommit, (SELECT ENGINE FROM information_schema.TABLES ' +
      `WHERE TABLE_NAME = '${name}' AND TABLE_SCHEMA = ${schema ? `'${schema}'` : 'DATABASE()'}) AS engine`,
  );
  return row?.engine == null ? null : String(row.engine);
}

export async function probe(
  database: Database,
  table: string,
): Promise<Pick<Guarantees, 'server' | 'findings'>> {
  const names = VARIABLES.replaceAll(' ', "','");
  const rows = await database.rows(`SHOW VARIABLES WHERE Variable_name IN ('${names}')`);
  const values = new Map(rows.map((row) => [row.Variable_name, String(row.Value)]));
  const is = (name: string): boolean => ['ON', '1'].includes(values.get(name) ?? '');
  const engine = await engineOf(database, table);
  const version = `${values.get('version')} (${values.get('version_comment')})`;
  const isOnDisk = is('innodb_flush_log_at_trx_commit') && (!is('log_bin') || is('sync_binlog'));
  return {
    server: `${/mariadb/i.test(version) ? 'MariaDB' : 'MySQL'} ${version}`,
    findings: findingsOf(
      (is('read_only') || is('innodb_read_only')) &&
        warning('This server is read-only, as a replica is: it takes no locks. Connect to the primary.'),
      engine === null &&
        warning(`The table ${table} is not there yet: run \`holdfast migrate --store URL\` once.`),
      engine !== null &&
        engine !== 'InnoDB' &&
        warning(`The engine of the table ${table} is ${engine}, which a crash may damage: make it InnoDB.`),
      isOnDisk
        ? good('A grant is on disk before it is answered: a crash of the server forgets none.')
        : warning(
            `innodb_flush_log_at_trx_commit or sync_binlog is not 1: a crash of the machine may forget ${FORGETS}.`,
          ),
      is('wsrep_on') && !is('wsrep_sync_wait')
        ? warning('Galera with wsrep_sync_wait = 0 reads old rows: set it to 1, or connect to one node only.')
        : note(`A failover to a replica may forget ${FORGETS}, as long as the clocks of both servers agree.`),
      good("Time is the server's clock: the clocks of its clients decide nothing."),
      note('MySQL sends no wake-ups: waiters poll.'),
    ),
  };
}
