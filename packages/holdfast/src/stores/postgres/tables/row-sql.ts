/** Parts of the statements on a table that other software has. The row is `r`, and a new row is `n`. */
import { quoteName } from '../sql/names.js';
import { OWN, type TableLayout } from './layout.js';

/** The server's time in milliseconds. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::text AS now';
/** How long to wait for a locked row. Evaluated before one is locked, because the statements join it. */
const PATIENCE = "patience AS MATERIALIZED (SELECT set_config('lock_timeout', '200ms', true))";

export interface Place {
  readonly layout: TableLayout;
  readonly schema: string;
  readonly table: string;
}

/** What a write returned: the row written, or the row that was there instead. */
export interface Outcome {
  readonly written: string | null;
  readonly found: string | null;
  /** The server undid the statement, because another was faster. */
  readonly isUndone: boolean;
}

/** Parts of the statements on a table. */
export interface RowSql {
  /** The quoted table. */
  readonly table: string;
  readonly key: string;
  /** The row `r` as JSON. */
  readonly row: string;
  /** Inserts the new row. */
  readonly insert: string;
  /** All columns, quoted. */
  readonly names: readonly string[];
  /** The new row `n`, which `$2` has as JSON. */
  readonly from: string;
  /** Assignments of all columns but the key. Marks and evictions are kept. */
  assigned(from: 'n' | 'excluded'): string;
  /**
   * `written` is a data-modifying statement that returns rows as JSON. The row that was in the way is locked for the
   * moment, because only so a statement sees a row that changed after it began.
   */
  changing(written: string): string;
}

export function sqlOf({ layout, schema, table: name }: Place): RowSql {
  const table = tableOf(schema, name);
  const key = quoteName(layout.keyColumn);
  const names = [layout.keyColumn, ...Object.keys(layout.columns), OWN].map(quoteName);
  const members = Object.entries({ ...layout.columns, [OWN]: `r.${OWN}` }).map(
    ([column, sql]) => `'${column}', ${sql}`,
  );
  const row = `jsonb_build_object(${members.join(', ')})`;
  const kept = `(SELECT jsonb_object_agg(part.key, part.value) FROM jsonb_each(r.${OWN}) AS part WHERE part.key IN ('ended', 'evictions'))`;
  const from = `jsonb_populate_record(NULL::${table}, $2::jsonb) AS n, patience`;
  return {
    table,
    key,
    row,
    names,
    from,
    insert: `INSERT INTO ${table} AS r (${names.join(', ')}) SELECT ${names.map((column) => `n.${column}`).join(', ')} FROM ${from}`,
    assigned: (source) =>
      names
        .slice(1)
        .map(
          (column) =>
            `${column} = ${source}.${column}${column === quoteName(OWN) ? ` || coalesce(${kept}, '{}')` : ''}`,
        )
        .join(', '),
    changing: (written) => `WITH ${PATIENCE}, changed (written) AS (${written})
      SELECT ${NOW}, (SELECT written FROM changed)::text AS written,
      (SELECT ${row} FROM ${table} AS r WHERE r.${key} = $1::text AND NOT EXISTS (SELECT FROM changed)
      FOR NO KEY UPDATE)::text AS found`,
  };
}

export function tableOf(schema: string, table: string): string {
  return `${quoteName(schema)}.${quoteName(table)}`;
}
