/**
 * Locks in a table of PostgreSQL that other software has, as a table of `sqlStore`.
 *
 * Layout: layout.ts, and one file per software. Atomic: every change is one statement (row-sql.ts), on the condition that
 * the row is as it was seen, in all its columns (ADR 48). A statement waits up to 200 ms for a row that another
 * transaction has locked; one that a stricter isolation level undid counts as a lost race.
 * Clock: the server's, estimated from the time in every reply. A lost reply: the connection broke after the commit, and
 * the core repeats the command with the same hold. There are no wake-ups: waiters poll.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Claim, Command, Guarantees, State } from '../../../protocol/index.js';
import { note } from '../../clients/findings.js';
import { CentralInstances } from '../../compare-and-swap/central-instances.js';
import { checkPlainLock, leavesForeign, ownPart } from '../../compare-and-swap/foreign.js';
import type { RecordTable } from '../../compare-and-swap/records.js';
import type { Found, Written } from '../../compare-and-swap/register.js';
import type { KeyedState, SqlTable, TableStore, Timed } from '../../sql/sql-table.js';
import { type Database, valuesIn } from '../clients.js';
import { sqlState } from '../errors.js';
import { type About, serverFindings } from '../probe.js';
import { aboutJson } from '../sql/reads.js';
import { explainTable } from './errors.js';
import { OWN, ownStateIn, type Row, rowOf, stateIn } from './layout.js';
import { type Place, type RowSql, sqlOf } from './row-sql.js';

/** Null for none. */
type Version = Row | null;

interface Answer {
  /** Whether there is a row in the reply. None comes from a write that found another row, or that the server undid. */
  readonly isThere: boolean;
  readonly found: string | null;
  readonly atMs: number | null;
}

const ABSENT: Found<Version> = { state: null, version: null, lateMs: 0 };
const SERIALIZATION_FAILURE = '40001';
/** Up to this size it hardly matters whether a statement reads the whole table. */
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
      const table: RecordTable<Version> = {
        absent: null,
        get: async (key) => {
          const version = await timed(() => this.#row(key));
          return { fields: version && instances.fieldsOf(version), version };
        },
        put: async (key, fields, seen) => {
          const version = instances.rowOf(fields);
          const isWritten = await timed(async () => {
            const { isThere: value, atMs } = await this.#put(key, version, seen);
            return { value, atMs };
          });
          return isWritten ? { kind: 'written', version } : { kind: 'changed', found: null };
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
    const { value: version, atMs } = await this.#row(key);
    if (version === null) return { value: ABSENT, atMs };
    return { value: { state: stateIn(this.#place.layout, key, version), version, lateMs: 0 }, atMs };
  }

  async replace(
    key: string,
    next: State,
    seen: Found<Version>,
    now: number,
  ): Promise<Timed<Written<Version>>> {
    const { version, state } = seen;
    // Nothing is written while the other software holds the lock; the row is only looked at.
    if (state && leavesForeign(state, next, now)) {
      const { value: found, atMs } = await this.read(key);
      if (!isDeepStrictEqual(found.version, version)) return { value: { kind: 'changed', found }, atMs };
      return { value: { kind: 'written', version, lateMs: 0, state }, atMs };
    }
    const { layout } = this.#place;
    const row = rowOf(layout, key, next);
    const written = (version && layout.replacing?.(row, version)) ?? row;
    const answer = await this.#put(key, written, version, isRelease(state, next));
    return writtenOf(answer, written, ownPart(next));
  }

  async take({ key, hold }: Claim, next: State): Promise<Timed<Written<Version>>> {
    // `next` may have been decided on an old record: marks and evictions are those of the row.
    const row = rowOf(this.#place.layout, key, { ...next, ended: [], evictions: [] });
    const limits = { ...hold, token: next.holders[0]?.token ?? 0, decision: next.decision };
    const values = [...this.#valuesOf(row), JSON.stringify(limits)];
    const answer = await this.#change(this.#sql.take, key, values);
    const { found: own } = answer;
    return writtenOf(answer, { ...row, [OWN]: own }, ownStateIn(key, own) ?? next);
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
    // A missing table or column is an error with advice.
    await this.read('default/holdfast-probe');
    const about = { ...(JSON.parse(found ?? '{}') as About), ready: true };
    const polled = note('A layout has no wake-ups and no queue: waiters poll a few times per second.');
    return { server: `PostgreSQL ${about.version}`, findings: [...serverFindings(about, schema), polled] };
  }

  /** A list leaves out rows that are not locks. */
  #listed(key: string, row: Row): State | null {
    const { layout } = this.#place;
    const isLock = (layout.isKey?.(key) ?? true) && layout.read(row) !== null;
    return isLock ? stateIn(layout, key, row) : null;
  }

  async #row(key: string): Promise<Timed<Version>> {
    const { found, atMs } = await this.#query(this.#sql.read, [this.#place.layout.nameOf(key)], key);
    return { value: found === null ? null : (JSON.parse(found) as Row), atMs };
  }

  /** Replaces the row, or inserts it where none was seen. */
  #put(key: string, next: Row, seen: Version, isReleased = false): Promise<Answer> {
    const { insert, replace, free } = this.#sql;
    const values = this.#valuesOf(next);
    if (seen === null) return this.#change(insert, key, values);
    return this.#change(isReleased ? free : replace, key, [...values, ...this.#valuesOf(seen)]);
  }

  #valuesOf(row: Row): (string | null)[] {
    return this.#sql.columns.map((column) => row[column] ?? null);
  }

  /** Runs a statement that writes, with the name as `$1`. */
  async #change(text: string, key: string, values: readonly (string | null)[]): Promise<Answer> {
    try {
      return await this.#query(text, [this.#place.layout.nameOf(key), ...values], key);
    } catch (error) {
      if (sqlState(error instanceof Error ? error.cause : error) !== SERIALIZATION_FAILURE) throw error;
      return { isThere: false, found: null, atMs: null };
    }
  }

  /**
   * A connection keeps the plan of a statement. One that was made while the table was small reads all of it, also when it has
   * grown: for a large table the text is another, and is planned again.
   */
  async #query(text: string, values: readonly (string | null)[], key: string): Promise<Answer> {
    try {
      const rows = await this.#database.rows(this.#isLarge ? `${text} -- large` : text, values);
      const [now = null, found = null, bytes] = valuesIn(rows) as readonly (string | null)[];
      if (bytes) this.#isLarge = Number(bytes) > SMALL_BYTES;
      return { isThere: rows.length > 0, found, atMs: now === null ? null : Number(now) * 1_000 };
    } catch (error) {
      throw explainTable(error, this.#place, key);
    }
  }
}

function writtenOf({ isThere, atMs }: Answer, version: Row, state: State): Timed<Written<Version>> {
  if (!isThere) return { value: { kind: 'changed', found: null }, atMs };
  return { value: { kind: 'written', version, lateMs: 0, state }, atMs };
}

/** Whether a write only frees the lock: no cool-down is left, which may last longer than the ttl, and nobody was evicted. */
function isRelease(seen: State | null, next: State): boolean {
  const { token, holders, rests, evictions } = next;
  return token === seen?.token && holders.length + rests.length + evictions.length === 0;
}
