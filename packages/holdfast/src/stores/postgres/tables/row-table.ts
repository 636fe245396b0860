/**
 * Locks in a table of other software in PostgreSQL, as a table of `sqlStore`.
 *
 * Layout: layout.ts, and one file per software. Atomic: every change is one statement (row-sql.ts), on the condition that
 * the row is as it was seen, compared as one JSON value (ADR 48). A statement waits up to 200 ms for a row that another
 * transaction has locked; a statement that a stricter isolation level undid counts as a lost race. Clock: the server's,
 * estimated from the time in every reply. A lost reply: the connection broke after the commit, and the engine repeats the
 * command with the same hold. There are no wake-ups: waiters poll.
 */
import type { Claim, Command, Guarantees, State } from '../../../protocol/index.js';
import { note } from '../../clients/findings.js';
import { CentralInstances } from '../../compare-and-swap/central-instances.js';
import { checkPlainLock, leavesForeign } from '../../compare-and-swap/foreign.js';
import type { FoundRecord, RecordTable } from '../../compare-and-swap/records.js';
import type { Found, Written } from '../../compare-and-swap/register.js';
import type { KeyedState, SqlTable, TableStore, Timed } from '../../sql/sql-table.js';
import { type Database, valuesIn } from '../clients.js';
import { sqlState } from '../errors.js';
import { type About, serverFindings } from '../probe.js';
import { aboutJson } from '../sql/reads.js';
import { explainTable } from './errors.js';
import { type Row, rowOf, stateIn } from './layout.js';
import { type Place, type RowSql, sqlOf } from './row-sql.js';

/** The row as JSON text; null for none. */
type Version = string | null;

/**
 * A write: the row written, or the row that was there instead. Neither if the server undid the write after a lost race.
 */
interface Outcome {
  readonly written: string | null;
  readonly found: string | null;
}

interface Answer extends Outcome {
  readonly atMs: number | null;
}

const ABSENT: Found<Version> = { state: null, version: null, lateMs: 0 };
const SERIALIZATION_FAILURE = '40001';
/** Up to this size, a statement may read the whole table at little cost. */
const SMALL_BYTES = 2 ** 18;

export class RowTable implements SqlTable<Version> {
  readonly absent = ABSENT;
  readonly instancesOn?: (store: TableStore) => CentralInstances<Version>;
  readonly #database: Database;
  readonly #place: Place;
  readonly #sql: RowSql;
  #isLarge = false;

  constructor(database: Database, place: Place) {
    this.#database = database;
    this.#place = place;
    const { layout } = place;
    this.#sql = sqlOf(place);
    const { instances } = layout;
    if (!instances) return;
    this.instancesOn = ({ time, swap, timed }) => {
      const foundOf = (text: Version): FoundRecord<Version> => ({
        fields: text === null ? null : instances.fieldsOf(JSON.parse(text) as Row),
        version: text,
      });
      const table: RecordTable<Version> = {
        absent: null,
        get: async (key) => foundOf(await timed(() => this.#row(key))),
        put: async (key, fields, seen) => {
          const { written, found } = await timed(() => this.#put(key, instances.rowOf(key, fields), seen));
          if (written !== null) return { kind: 'written', version: written };
          return { kind: 'changed', found: found === null ? null : foundOf(found) };
        },
      };
      const encode = (key: string, state: State) => instances.fieldsOf(rowOf(layout, key, state));
      return new CentralInstances({ table, time, swap, encode });
    };
  }

  check(command: Command): void {
    const { layout } = this.#place;
    layout.nameOf(command.key);
    checkPlainLock(command, layout.name);
  }

  async read(key: string): Promise<Timed<Found<Version>>> {
    const { value, atMs } = await this.#row(key);
    return { value: this.#found(key, value), atMs };
  }

  async replace(
    key: string,
    next: State,
    seen: Found<Version>,
    now: number,
  ): Promise<Timed<Written<Version>>> {
    const { version, state } = seen;
    // While the other software holds the lock, the row is only read, never written.
    if (state && leavesForeign(state, next, now)) {
      const { value: found, atMs } = await this.read(key);
      if (found.version !== version) return { value: { kind: 'changed', found }, atMs };
      return { value: { kind: 'written', version, lateMs: 0, state }, atMs };
    }
    const row = rowOf(this.#place.layout, key, next);
    return this.#written(key, await this.#put(key, row, version, isRelease(state, next)));
  }

  async take({ key, hold }: Claim, next: State): Promise<Timed<Written<Version>>> {
    // `next` may have been decided on an old record, so marks and evictions come from the row.
    const row = JSON.stringify(rowOf(this.#place.layout, key, { ...next, ended: [], evictions: [] }));
    const limits = { ...hold, token: next.holders[0]?.token ?? 0, decision: next.decision };
    return this.#written(key, await this.#change(this.#sql.take, key, [row, JSON.stringify(limits)]));
  }

  async page(prefix: string, after: string | null, rows: number): Promise<Timed<readonly KeyedState[]>> {
    const { found, atMs } = await this.#query(this.#sql.page(rows), [prefix, after ?? ''], prefix);
    const all = JSON.parse(found ?? '[]') as readonly { readonly key: string; readonly row: Row }[];
    return { value: all.map(({ key, row }) => ({ key, state: () => this.#listed(key, row) })), atMs };
  }

  async time(): Promise<Timed<null>> {
    return { value: null, atMs: (await this.#query(this.#sql.time, [], '')).atMs };
  }

  async cleanUp(rows: number): Promise<number> {
    return Number((await this.#query(this.#sql.cleanUp(rows), [], '')).found);
  }

  async probe(): Promise<Pick<Guarantees, 'server' | 'findings'>> {
    const { schema } = this.#place;
    const { found } = await this.#query(`SELECT NULL AS now, ${aboutJson(schema)}::text AS found`, [], '');
    // This read rejects with advice if the table or the column is missing.
    await this.read('default/holdfast-probe');
    const about = { ...(JSON.parse(found ?? '{}') as About), ready: true };
    const polled = note('A layout has no wake-ups and no queue: waiters poll a few times per second.');
    return { server: `PostgreSQL ${about.version}`, findings: [...serverFindings(about, schema), polled] };
  }

  #found(key: string, text: string | null): Found<Version> {
    if (text === null) return ABSENT;
    return { state: stateIn(this.#place.layout, key, JSON.parse(text) as Row), version: text, lateMs: 0 };
  }

  #written(key: string, { value, atMs }: Timed<Outcome>): Timed<Written<Version>> {
    const { version, state } = this.#found(key, value.written);
    if (state) return { value: { kind: 'written', version, lateMs: 0, state }, atMs };
    // Null if no row came back, because it was deleted, or inserted after the statement began. Then the caller reads it.
    return {
      value: { kind: 'changed', found: value.found === null ? null : this.#found(key, value.found) },
      atMs,
    };
  }

  /** A list leaves out rows that are not locks. */
  #listed(key: string, row: Row): State | null {
    const { layout } = this.#place;
    const isLock = (layout.isKey?.(key) ?? true) && layout.read(row) !== null;
    return isLock ? stateIn(layout, key, row) : null;
  }

  async #row(key: string): Promise<Timed<Version>> {
    const { found, atMs } = await this.#query(this.#sql.read, [this.#place.layout.nameOf(key)], key);
    return { value: found, atMs };
  }

  /** Replaces the row, or inserts it if none was seen. */
  async #put(key: string, next: Row, seen: Version, isReleased = false): Promise<Timed<Outcome>> {
    const row = JSON.stringify(next);
    const { insert, replace, free } = this.#sql;
    return seen === null
      ? await this.#change(insert, key, [row])
      : await this.#change(isReleased ? free : replace, key, [row, seen]);
  }

  /** Runs a statement of `changing`, with the name as `$1`. */
  async #change(text: string, key: string, values: readonly string[]): Promise<Timed<Outcome>> {
    try {
      const name = this.#place.layout.nameOf(key);
      const { written, found, atMs } = await this.#query(text, [name, ...values], key);
      return { value: { written, found }, atMs };
    } catch (error) {
      if (sqlState(error instanceof Error ? error.cause : error) !== SERIALIZATION_FAILURE) throw error;
      return { value: { written: null, found: null }, atMs: null };
    }
  }

  /**
   * A connection keeps the plan of a statement. A plan made while the table was small reads the whole table, even when it
   * has grown. For a large table the text is different, so that it is planned again.
   */
  async #query(text: string, values: readonly string[], key: string): Promise<Answer> {
    try {
      const rows = await this.#database.rows(this.#isLarge ? `${text} -- large` : text, values);
      const [now, found = null, written = null, bytes] = valuesIn(rows) as readonly (string | null)[];
      if (bytes) this.#isLarge = Number(bytes) > SMALL_BYTES;
      return { written, found, atMs: now === null ? null : Number(now) };
    } catch (error) {
      throw explainTable(error, this.#place, key);
    }
  }
}

/** Whether a write only frees the lock: no cool-down is left, which may last longer than the ttl, and nobody was evicted. */
function isRelease(seen: State | null, next: State): boolean {
  const { token, holders, rests, evictions } = next;
  return token === seen?.token && holders.length + rests.length + evictions.length === 0;
}
