/**
 * The table of a layout for `sqlStore`. A row is compared as one JSON value of all its columns, so a row with nulls or
 * with times of any kind compares exactly, whatever the time zone and the format of dates of the connection.
 *
 * Every operation is one statement. It waits up to 200 ms for a row that another transaction has locked. A statement that
 * a stricter isolation level undid counts as a lost race.
 */
import { type Claim, type Command, STATE_VERSION, type State } from '../../../protocol/index.js';
import { checkPlainLock, leavesForeign } from '../../compare-and-swap/foreign.js';
import type { Found, Written } from '../../compare-and-swap/register.js';
import type { KeyedState, SqlTable, TableTime, Timed } from '../../sql/sql-table.js';
import type { Database } from '../clients.js';
import { sqlState } from '../errors.js';
import { type About, findingsOf } from '../probe.js';
import { quoteName } from '../sql/names.js';
import { aboutJson } from '../sql/reads.js';
import { explainTable } from './errors.js';
import { InstanceRows } from './instance-rows.js';
import { OWN, type Row, rowOf, stateIn } from './layout.js';
import { NOW, type Outcome, type Place, type RowSql, sqlOf } from './row-sql.js';

/** The row as JSON text; null for none. */
export type Version = string | null;

const ABSENT: Found<Version> = { state: null, version: null, lateMs: 0 };
const SERIALIZATION_FAILURE = '40001';

export class RowTable implements SqlTable<Version> {
  readonly absent = ABSENT;
  readonly #database: Database;
  readonly #place: Place;
  readonly #sql: RowSql;
  readonly instancesOn?: (time: TableTime) => InstanceRows;

  constructor(database: Database, place: Place) {
    this.#database = database;
    this.#place = place;
    this.#sql = sqlOf(place);
    const { instances } = place.layout;
    if (instances) {
      this.instancesOn = (time) =>
        new InstanceRows({
          sql: this.#sql,
          layout: place.layout,
          change: this.change.bind(this),
          read: this.row.bind(this),
          time,
        });
    }
  }

  check(command: Command): void {
    const { layout } = this.#place;
    layout.nameOf(command.key);
    checkPlainLock(command, layout.name);
  }

  async read(key: string): Promise<Timed<Found<Version>>> {
    const { value, atMs } = await this.row(key);
    return { value: this.#found(key, value), atMs };
  }

  /** The row of a key as JSON text. */
  async row(key: string): Promise<Timed<Version>> {
    const { table, row, key: column } = this.#sql;
    const text = `SELECT ${NOW}, (SELECT ${row} FROM ${table} AS r WHERE r.${column} = $1::text)::text AS found`;
    const { found, atMs } = await this.#query(text, [this.#place.layout.nameOf(key)], key);
    return { value: found ?? null, atMs };
  }

  async replace(
    key: string,
    next: State,
    seen: Found<Version>,
    now: number,
  ): Promise<Timed<Written<Version>>> {
    // Nothing is written while the other software holds the lock; the row is only looked at.
    if (seen.state && leavesForeign(seen.state, next, now)) {
      const { value: found, atMs } = await this.read(key);
      const { version, state } = seen;
      if (found.version !== version) return { value: { kind: 'changed', found }, atMs };
      return { value: { kind: 'written', version, lateMs: 0, state }, atMs };
    }
    const { table, insert, key: column, from, row } = this.#sql;
    const set = [...Object.keys(this.#place.layout.columns), OWN].map(
      (name) => `${quoteName(name)} = ${this.#place.layout.replaced[name] ?? `n.${quoteName(name)}`}`,
    );
    const text =
      seen.version === null
        ? `${insert} ON CONFLICT (${column}) DO NOTHING RETURNING ${row}`
        : `UPDATE ${table} AS r SET ${set.join(', ')} FROM ${from} WHERE r.${column} = $1::text AND ${row} = $3::jsonb RETURNING ${row}`;
    const json = JSON.stringify(rowOf(this.#place.layout, key, next));
    const seenRow = seen.version === null ? [] : [seen.version];
    const { value, atMs } = await this.change(text, key, [json, ...seenRow]);
    const { written: version, found } = value;
    if (version === null) return { value: this.#changed(key, found), atMs };
    return { value: { kind: 'written', version, lateMs: 0 }, atMs };
  }

  async take(claim: Claim, next: State): Promise<Timed<Written<Version>>> {
    const { key, hold } = claim;
    const { layout } = this.#place;
    const { insert, key: column, row, assigned } = this.#sql;
    const own = `r.${OWN}`;
    const text = `${insert} ON CONFLICT (${column}) DO UPDATE SET ${assigned('excluded')}
      WHERE ${layout.freeSql} AND ${own}->'version' = '${STATE_VERSION}'
      AND ${own}->'token' < $3::jsonb->'token' AND ${own}->'decision' < $3::jsonb->'decision'
      AND NOT EXISTS (SELECT FROM jsonb_array_elements(${own}->'ended') AS mark
        WHERE mark->'process' = $3::jsonb->'process' AND mark->'number' >= $3::jsonb->'number')
      RETURNING ${row}`;
    // `next` may have been decided on an old record: marks and evictions are those of the row.
    const json = JSON.stringify(rowOf(layout, key, { ...next, ended: [], evictions: [] }));
    const { token = 0 } = next.holders[0] ?? {};
    const limits = JSON.stringify({ ...hold, token, decision: next.decision });
    const { value, atMs } = await this.change(text, key, [json, limits]);
    if (value.written === null) return { value: this.#changed(key, value.found), atMs };
    const found = this.#found(key, value.written);
    const { version, state } = found;
    return { value: { kind: 'written', version, lateMs: 0, state: state ?? next }, atMs };
  }

  /** Runs a data-modifying statement that returns rows as JSON, with the name as `$1`. */
  async change(text: string, key: string, values: readonly string[]): Promise<Timed<Outcome>> {
    try {
      const name = this.#place.layout.nameOf(key);
      const statement = this.#sql.changing(text);
      const { written = null, found = null, atMs } = await this.#query(statement, [name, ...values], key);
      return { value: { written, found, isUndone: false }, atMs };
    } catch (error) {
      const cause = error instanceof Error && error.cause ? error.cause : error;
      if (sqlState(cause) !== SERIALIZATION_FAILURE) throw error;
      return { value: { written: null, found: null, isUndone: true }, atMs: null };
    }
  }

  async page(prefix: string, after: string | null, rows: number): Promise<Timed<readonly KeyedState[]>> {
    const { layout } = this.#place;
    const { table, row } = this.#sql;
    const page = `SELECT (${layout.keySql}) COLLATE "C" AS key, ${row} AS row FROM ${table} AS r
      WHERE starts_with(${layout.keySql}, $1::text) AND (${layout.keySql}) COLLATE "C" > $2::text
      ORDER BY 1 LIMIT ${rows}`;
    const text = `SELECT ${NOW}, (SELECT json_agg(page ORDER BY page.key)::text FROM (${page}) AS page) AS found`;
    const { found, atMs } = await this.#query(text, [prefix, after ?? ''], prefix);
    const all = JSON.parse(found ?? '[]') as readonly { readonly key: string; readonly row: Row }[];
    return { value: all.map((one) => ({ key: one.key, state: this.#listed(one.key, one.row) })), atMs };
  }

  async time(): Promise<Timed<null>> {
    const { atMs } = await this.#query(`SELECT ${NOW}`, [], '');
    return { value: null, atMs };
  }

  async cleanUp(rows: number): Promise<number> {
    const { layout } = this.#place;
    const { table, key } = this.#sql;
    const old = `SELECT r.${key} FROM ${table} AS r WHERE ${layout.ownSql} AND ${layout.expendableSql} LIMIT ${rows} FOR UPDATE SKIP LOCKED`;
    const gone = `DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(${old})) RETURNING 1`;
    const text = `WITH gone AS (${gone}) SELECT (SELECT count(*)::text FROM gone) AS found, NULL AS now`;
    const { found } = await this.#query(text, [], '');
    return Number(found);
  }

  async probe(): Promise<{ server: string; findings: ReturnType<typeof findingsOf> }> {
    const { schema } = this.#place;
    const { found } = await this.#query(`SELECT ${aboutJson(schema)}::text AS found, NULL AS now`, [], '');
    const about = JSON.parse(found ?? '{}') as About;
    // A missing table or column is an error with advice.
    await this.row('default/holdfast-probe');
    return { server: `PostgreSQL ${about.version}`, findings: findingsOf({ ...about, ready: true }, schema) };
  }

  #found(key: string, text: string | null): Found<Version> {
    if (text === null) return ABSENT;
    return { state: stateIn(this.#place.layout, key, JSON.parse(text) as Row), version: text, lateMs: 0 };
  }

  #changed(key: string, text: string | null): Written<Version> {
    // The row may be newer than what the statement could see; then there is none, and it is read.
    return { kind: 'changed', found: text === null ? null : this.#found(key, text) };
  }

  /** A list leaves out rows that are not locks. */
  #listed(key: string, row: Row): State | null {
    const { layout } = this.#place;
    const isLock = (layout.isKey?.(key) ?? true) && layout.read(row) !== null;
    return isLock ? stateIn(layout, key, row) : null;
  }

  async #query(
    text: string,
    values: readonly string[],
    key: string,
  ): Promise<{
    readonly written?: string | null;
    readonly found?: string | null;
    readonly atMs: number | null;
  }> {
    try {
      const [row] = await this.#database.rows(text, values);
      const { now, written, found } = row as {
        readonly now: string | null;
        written?: string;
        found?: string;
      };
      return {
        ...(written !== undefined && { written }),
        ...(found !== undefined && { found }),
        atMs: now === null ? null : Number(now),
      };
    } catch (error) {
      throw explainTable(error, this.#place, key);
    }
  }
}
