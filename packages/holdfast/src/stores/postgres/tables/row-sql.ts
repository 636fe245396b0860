/**
 * The statements on a table of other software. The row is `r`, and a new row, given as JSON in `$2`, is `n`. Their columns
 * are read in this order, as far as a statement has them: `now`, `found`, `written`, `bytes`.
 */
import { STATE_VERSION } from '../../../protocol/index.js';
import { quoteName, quoteText } from '../sql/names.js';
import { LOCK_TIMEOUT, NO_SYNC } from '../sql/records.js';
import { OWN, type TableLayout } from './layout.js';

export interface Place {
  readonly layout: TableLayout;
  readonly schema: string;
  readonly table: string;
}

/** The server's time in milliseconds. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::text AS now';
/** A setting for this statement alone. It is evaluated before a row is locked, because the statements join it. */
const SETTINGS = `set_config('lock_timeout', '${LOCK_TIMEOUT}', true)`;
/** Whether a mark shows that the hold in `$3` has ended. */
const IS_ENDED = `EXISTS (SELECT FROM jsonb_array_elements(r.${OWN}->'ended') AS mark
  WHERE mark->'process' = $3::jsonb->'process' AND mark->'number' >= $3::jsonb->'number')`;
const KEPT = `(SELECT jsonb_object_agg(part.key, part.value) FROM jsonb_each(r.${OWN}) AS part WHERE part.key IN ('ended', 'evictions'))`;

export type RowSql = ReturnType<typeof sqlOf>;

export function sqlOf({ layout, schema, table: name }: Place) {
  const table = tableOf(schema, name);
  const key = quoteName(layout.keyColumn);
  const names = [layout.keyColumn, ...Object.keys(layout.columns), OWN].map(quoteName);
  const members = Object.entries({ ...layout.columns, [OWN]: `r.${OWN}` });
  const row = `jsonb_build_object(${members.map(([column, sql]) => `'${column}', ${sql}`).join(', ')})`;
  const replaced = members.map(([column]) => {
    const quoted = quoteName(column);
    return `${quoted} = ${layout.replaced[column] ?? `n.${quoted}`}`;
  });
  /** Assigns all columns except the key. Marks and evictions of the row stay. */
  const assigned = names.slice(1).map((column) => `${column} = excluded.${column}`);
  const from = `jsonb_populate_record(NULL::${table}, $2::jsonb) AS n, settings`;
  const values = names.map((column) => `n.${column}`);
  const insert = `INSERT INTO ${table} AS r (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${from} ON CONFLICT (${key}) DO`;
  const replace = `UPDATE ${table} AS r SET ${replaced.join(', ')} FROM ${from}
      WHERE r.${key} = $1::text AND ${row} = $3::jsonb`;
  const size = `pg_relation_size(${quoteText(table)}::regclass)::text AS bytes`;
  /**
   * Returns the row that was written, or the row that was in the way. The latter is locked for the moment: only a lock
   * shows a statement a row that changed after the statement began.
   */
  const changing = (
    write: string,
    settings = SETTINGS,
  ): string => `WITH settings AS MATERIALIZED (SELECT ${settings}), changed (written) AS (${write} RETURNING ${row})
    SELECT ${NOW}, (SELECT ${row} FROM ${table} AS r WHERE r.${key} = $1::text AND NOT EXISTS (SELECT FROM changed)
    FOR NO KEY UPDATE)::text AS found, (SELECT written FROM changed)::text AS written, ${size}`;
  const inOrder = `(${layout.keySql}) COLLATE "C"`;
  return {
    time: `SELECT ${NOW}`,
    read: `SELECT ${NOW}, (SELECT ${row} FROM ${table} AS r WHERE r.${key} = $1::text)::text AS found`,
    insert: changing(`${insert} NOTHING`),
    replace: changing(replace),
    /** Does not wait for the disk: if a crash loses the write, the lock stays held until its ttl ends. */
    free: changing(replace, `${SETTINGS}, ${NO_SYNC}`),
    take: changing(`${insert} UPDATE SET ${assigned.join(', ')} || coalesce(${KEPT}, '{}')
      WHERE ${layout.freeSql} AND r.${OWN}->'version' = '${STATE_VERSION}' AND NOT ${IS_ENDED}
      AND r.${OWN}->'token' < $3::jsonb->'token' AND r.${OWN}->'decision' < $3::jsonb->'decision'`),
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
