/**
 * The statements on a table that other software has. The row is `r`. The key is `$1`, then the columns of the new row follow,
 * and those of the row seen: plain parameters, which take the types of the columns. JSON for the whole row took twice the
 * server's time. A write that found another row returns no row, and a read follows. The columns of a reply are read in this
 * order, as far as it has them: `now`, `found`, `bytes`.
 */
import { STATE_VERSION } from '../../../protocol/index.js';
import { quoteName, quoteText } from '../sql/names.js';
import { LOCK_TIMEOUT, NO_SYNC } from '../sql/records.js';
import { jsonColumn, OWN, type TableLayout } from './layout.js';

export interface Place {
  readonly layout: TableLayout;
  readonly schema: string;
  readonly table: string;
}

/** The server's time in seconds. */
const NOW = 'extract(epoch FROM clock_timestamp())::text AS now';
/** For this statement alone. Evaluated before a row is locked, because the statements join it. */
const SETTINGS = `set_config('lock_timeout', '${LOCK_TIMEOUT}', true)`;
/** The record is older than the limits in the last parameter, and has no mark that the hold has ended. */
const IS_TAKEABLE = `$ ? (@.version == ${STATE_VERSION} && @.token < $token && @.decision < $decision
  && !exists(@.ended[*] ? (@.process == $process && @.number >= $number)))`;

export type RowSql = ReturnType<typeof sqlOf>;

export function sqlOf({ layout, schema, table: name }: Place) {
  const table = tableOf(schema, name);
  const key = quoteName(layout.keyColumn);
  const columns = Object.entries({ ...layout.columns, [OWN]: jsonColumn(OWN) });
  const names = columns.map(([column]) => quoteName(column));
  const own = quoteName(OWN);
  const row = `jsonb_build_object(${columns.map(([column, { text }]) => `'${column}', ${text}`).join(', ')})`;
  const given = columns.map((_, at) => `$${at + 2}`);
  const afterGiven = (at: number): string => `$${columns.length + at + 2}`;
  const from = (settings: string): string => `FROM (SELECT ${settings}) AS settings`;
  const size = `pg_relation_size(${quoteText(table)}::regclass)::text AS bytes`;
  const returning = (found = 'NULL'): string => `RETURNING ${NOW}, ${found} AS found, ${size}`;
  const insert = `INSERT INTO ${table} AS r (${[key, ...names].join(', ')}) SELECT $1::text, ${given.join(', ')} ${from(SETTINGS)}
    ON CONFLICT (${key}) DO`;
  const same = columns.map(([, { value }], at) => `${value} IS NOT DISTINCT FROM ${afterGiven(at)}`);
  const replace = (settings: string): string => `UPDATE ${table} AS r
    SET ${names.map((column, at) => `${column} = ${given[at]}`).join(', ')} ${from(settings)}
    WHERE r.${key} = $1::text AND ${same.join(' AND ')} ${returning()}`;
  /** Of all columns but the key. What else is in our column is kept: marks and evictions. */
  const taken = names.map(
    (column) => `${column} = ${column === own ? `r.${own} || ` : ''}excluded.${column}`,
  );
  const inOrder = `(${layout.keySql}) COLLATE "C"`;
  return {
    columns: columns.map(([column]) => column),
    time: `SELECT ${NOW}`,
    read: `SELECT ${NOW}, (SELECT ${row} FROM ${table} AS r WHERE r.${key} = $1::text)::text AS found`,
    insert: `${insert} NOTHING ${returning()}`,
    replace: replace(SETTINGS),
    /** Does not wait for the disk: lost in a crash, the lock stays held until its ttl ends. */
    free: replace(`${SETTINGS}, ${NO_SYNC}`),
    take: `${insert} UPDATE SET ${taken.join(', ')}
      WHERE ${layout.freeSql} AND jsonb_path_exists(r.${OWN}, '${IS_TAKEABLE}', ${afterGiven(0)}::jsonb) ${returning(`r.${own}::text`)}`,
    page: (rows: number): string => `SELECT ${NOW}, (SELECT json_agg(page ORDER BY page.key)::text FROM (
      SELECT ${inOrder} AS key, ${row} AS row FROM ${table} AS r
      WHERE starts_with(${layout.keySql}, $1::text) AND ${inOrder} > $2::text ORDER BY 1 LIMIT ${rows}) AS page) AS found`,
    cleanUp: (rows: number): string => `WITH gone AS (DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(
      SELECT r.${key} FROM ${table} AS r WHERE r.${OWN} IS NOT NULL AND ${layout.ownSql} AND ${layout.expendableSql}
      LIMIT ${rows} FOR UPDATE SKIP LOCKED)) RETURNING 1) SELECT NULL AS now, count(*)::text AS found FROM gone`,
  };
}

export function tableOf(schema: string, table: string): string {
  return `${quoteName(schema)}.${quoteName(table)}`;
}
