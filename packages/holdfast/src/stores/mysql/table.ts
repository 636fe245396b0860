/**
 * Locks in a table of MySQL or MariaDB.
 *
 * Layout: one row per key: `lock_key`, compared byte by byte; `version`, a new text with every write; `state`, the state
 * as JSON; `delete_after`, the time in milliseconds from which on the row may be deleted.
 *
 * Atomic: an `UPDATE … WHERE version = …`, or an `INSERT` that only overwrites a row that may be deleted.
 * Clock: the server's, in microseconds, in UTC, so that no session's time zone matters.
 *
 * There is no `UPDATE … RETURNING`. A write returns its time by LAST_INSERT_ID(…), which the server sends with its reply
 * as the id of the last insert, only if it ran: if the condition was true. So the reply does not depend on how the
 * connection counts rows (CLIENT_FOUND_ROWS).
 *
 * A lost reply: the write was committed or not. The engine repeats the command with the same hold.
 */
import { expendableAt } from '../../protocol/index.js';
import type { Found } from '../compare-and-swap/register.js';
import { newVersion, stateIn, textOf, VERSION_LENGTH_MAX } from '../sql/row-state.js';
import type { SqlTable } from '../sql/sql-table.js';
import type { Database, Row } from './database.js';
import { explain } from './errors.js';
import { probe } from './probe.js';

/** A namespace, a slash and a name. */
const COLUMN_BYTES = 640;
const NOW_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
/** Twice the time, plus one where the session has autocommit (database.ts). An exact number until the year 2112. */
const STAMP = `LAST_INSERT_ID(${NOW_US} * 2 + @@autocommit)`;
const TIME = `${NOW_US} AS now_us, @@autocommit AS autocommit`;

export function tableSql(quoted: string): string {
  return [
    `CREATE TABLE IF NOT EXISTS ${quoted} (`,
    `  lock_key VARBINARY(${COLUMN_BYTES}) NOT NULL PRIMARY KEY,`,
    `  version VARBINARY(${VERSION_LENGTH_MAX}) NOT NULL,`,
    '  state MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,',
    '  delete_after BIGINT NOT NULL,',
    '  KEY delete_after (delete_after)',
    ') ENGINE = InnoDB',
  ].join('\n');
}

export function mysqlTable(database: Database, quoted: string): SqlTable<string> {
  const isExpendable = `delete_after < ${NOW_US} DIV 1000`;
  const select = `SELECT ${TIME}, version, state FROM (SELECT 1) AS one LEFT JOIN ${quoted} ON lock_key = ?`;
  const update =
    `UPDATE ${quoted} SET version = ?, state = ?, delete_after = CAST(? AS SIGNED) + 0 * ${STAMP} ` +
    'WHERE lock_key = ? AND version = ?';
  // The stamp of the new row counts, unless a row stays: then the last LAST_INSERT_ID is 0. Correct in any order of SET.
  const insert =
    `INSERT INTO ${quoted} (lock_key, version, state, delete_after) ` +
    `VALUES (?, ?, ?, CAST(? AS SIGNED) + 0 * ${STAMP}) ON DUPLICATE KEY UPDATE ` +
    `version = IF(${isExpendable}, ?, version), state = IF(${isExpendable}, ?, state), ` +
    `delete_after = IF(${isExpendable}, CAST(? AS SIGNED), delete_after + LAST_INSERT_ID(0 * delete_after))`;

  async function explained<T>(key: string | undefined, run: Promise<T>): Promise<T> {
    try {
      return await run;
    } catch (error) {
      throw explain(error, quoted, key);
    }
  }

  const absent: Found<string> = { state: null, version: '', lateMs: 0 };
  return {
    absent,
    async read(key) {
      const [row = {}] = await explained(key, database.rows(select, [Buffer.from(key)]));
      return { value: row.version == null ? absent : found(key, row), atMs: atMs(row) };
    },
    async replace(key, next, seen) {
      const version = newVersion();
      const columns = [version, textOf(next), String(expendableAt(next))];
      const name = Buffer.from(key);
      const write =
        seen.version === absent.version
          ? database.change(insert, [name, ...columns, ...columns])
          : database.change(update, [...columns, name, seen.version]);
      const { insertId } = await explained(key, write);
      if (insertId === 0) return { value: { kind: 'changed', found: null }, atMs: null };
      return { value: { kind: 'written', version, lateMs: 0 }, atMs: Math.floor(insertId / 2) / 1_000 };
    },
    async page(prefix, after, rows) {
      const begins = Buffer.from(prefix);
      const wanted = `lock_key >= ? AND LEFT(lock_key, ${begins.length}) = ?${after === null ? '' : ' AND lock_key > ?'}`;
      const text =
        `SELECT ${TIME}, lock_key, version, state FROM (SELECT 1) AS one LEFT JOIN (SELECT lock_key, version, state ` +
        `FROM ${quoted} WHERE ${wanted} ORDER BY lock_key LIMIT ${rows}) AS page ON TRUE ORDER BY lock_key`;
      const values = [begins, begins, ...(after === null ? [] : [Buffer.from(after)])];
      const all = await explained(undefined, database.rows(text, values));
      const value = all
        .filter((row) => row.lock_key != null)
        .map((row) => {
          const key = textIn(row.lock_key);
          return { key, state: found(key, row).state };
        });
      return { value, atMs: atMs(all[0] ?? {}) };
    },
    async time() {
      const [row = {}] = await explained(undefined, database.rows(`SELECT ${TIME}`, []));
      return { value: null, atMs: atMs(row) };
    },
    async cleanUp(rows) {
      // Found without locks, and deleted one by one, so that no range of keys is locked.
      const text =
        `SELECT ${TIME}, lock_key, version FROM (SELECT 1) AS one LEFT JOIN (SELECT lock_key, version ` +
        `FROM ${quoted} WHERE ${isExpendable} LIMIT ${rows}) AS old ON TRUE`;
      const old = (await explained(undefined, database.rows(text, []))).filter((row) => row.lock_key != null);
      if (old.length === 0) return 0;
      const condition = old.map(() => '(lock_key = ? AND version = ?)').join(' OR ');
      const values = old.flatMap((row) => [row.lock_key as Buffer, row.version as Buffer]);
      await explained(undefined, database.change(`DELETE FROM ${quoted} WHERE ${condition}`, values));
      return old.length;
    },
    probe: () => probe(database, quoted),
  };
}

function found(key: string, row: Row): Found<string> {
  return { state: stateIn(textIn(row.state), key), version: textIn(row.version), lateMs: 0 };
}

/** Columns of bytes come as a Buffer. */
function textIn(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString() : String(value);
}

function atMs(row: Row): number {
  return Number(row.now_us) / 1_000;
}
