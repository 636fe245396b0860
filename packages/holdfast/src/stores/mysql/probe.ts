/** Findings about this server as it is configured, in sentences for users. */
import type { Guarantees } from '../../protocol/index.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { Database } from './database.js';

/** Not every server has all of them. */
const VARIABLES =
  'version version_comment read_only innodb_read_only log_bin sync_binlog innodb_flush_log_at_trx_commit wsrep_on';
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

/** Which servers answer: plain reads on several connections, and one that a proxy sends where writes go. */
async function serversOf(database: Database): Promise<ReadonlySet<string>> {
  const sql = "SELECT @@autocommit AS autocommit, CONCAT(@@hostname, ':', @@port) AS server FROM DUAL";
  const asked = [sql, sql, sql, `${sql} FOR UPDATE`];
  const replies = await Promise.all(asked.map((one) => database.rows(one)));
  return new Set(replies.map(([row]) => String(row?.server)));
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
  const servers = await serversOf(database);
  const version = `${values.get('version')} (${values.get('version_comment')})`;
  const isOnDisk = is('innodb_flush_log_at_trx_commit') && (!is('log_bin') || is('sync_binlog'));
  return {
    server: `${/mariadb/i.test(version) ? 'MariaDB' : 'MySQL'} ${version}`,
    findings: findingsOf(
      (is('read_only') || is('innodb_read_only')) &&
        warning('This server is read-only, as a replica is: it cannot store locks. Connect to the primary.'),
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
      servers.size > 1 &&
        warning(
          `Several servers answer (${[...servers].join(', ')}), so several clocks decide, and two may hold one lock: connect to one ` +
            'server only, without a proxy that spreads statements.',
        ),
      is('wsrep_on') &&
        warning(
          'This is a node of a Galera cluster. All clients have to use one and the same node: with several, several clocks ' +
            'decide, and reads are old.',
        ),
      note(`A failover to a replica may forget ${FORGETS}, as long as the clocks of both servers agree.`),
      good("Time is the server's clock: the clocks of its clients decide nothing."),
      note('MySQL sends no wake-ups: waiters poll.'),
    ),
  };
}
