/**
 * Locks in a table of MySQL or MariaDB.
 *
 * Layout: one row per key: `lock_key`, compared byte by byte; `version`, a new text with every write; `state`, the state
 * as JSON; `delete_after`, the time in milliseconds from which on the row may be deleted.
 *
 * Atomic: an `UPDATE … WHERE version = …`, or an `INSERT` that overwrites only a row that may be deleted.
 * Clock: the server's, in microseconds and UTC, so that no session's time zone matters.
 *
 * There is no `UPDATE … RETURNING`. A write returns its time by LAST_INSERT_ID(…), which the server sends with its reply
 * as the id of the last insert, only if it ran: if the condition was true. So the reply does not depend on how the
 * connection counts rows (CLIENT_FOUND_ROWS).
 *
 * A lost reply: the write was committed or not. The engine repeats the command with the same hold.
 */
import { codeOf } from '../clients/errors.js';
import type { Found } from '../compare-and-swap/register.js';
import type { SqlTable, Timed } from '../sql/sql-table.js';
import { type Database, hex, type Row } from './database.js';
import { probe } from './probe.js';
import { explained } from './refusals.js';
import { type NewRow, rowOf, stateIn, VERSION_LENGTH_MAX } from './row.js';
import { type Update, UpdateGroups } from './update-groups.js';

/** A namespace, a slash and a name. */
const COLUMN_BYTES = 640;
const NOW_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
/** MariaDB runs this kind of comment, and MySQL does not. */
const IS_BOUNDED = '0 /*M! + 1 */';
const TIME = `${NOW_US} AS now_us, @@autocommit AS autocommit, ${IS_BOUNDED} AS is_bounded`;
/** Several rows in one statement: one that is locked makes it fail after a second. MySQL has nothing like it. */
const BOUNDED = '/*M! SET STATEMENT innodb_lock_wait_timeout = 1 FOR */';
/** Twice the time, plus one where the session has autocommit (database.ts). An exact number until the year 2112. */
const STAMP = `LAST_INSERT_ID(${NOW_US} * 2 + @@autocommit)`;
/** One more is an error in every `sql_mode`, and undoes the statement. */
const BIGINT_MAX = '9223372036854775807';
const IS_OLD = `delete_after < ${NOW_US} DIV 1000`;
/** The time has a row of its own, so that it comes also where nothing is found. */
const WITH_TIME = `SELECT ${TIME}, found.* FROM (SELECT 1) AS one LEFT JOIN`;

interface FoundRow {
  readonly key: string;
  readonly version: string;
  readonly state: string;
}

const ABSENT: Found<string> = { state: null, version: '', lateMs: 0 };

export function tableSql(table: string): string {
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (`,
    `  lock_key VARBINARY(${COLUMN_BYTES}) NOT NULL PRIMARY KEY,`,
    `  version VARBINARY(${VERSION_LENGTH_MAX}) NOT NULL,`,
    '  state MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,',
    '  delete_after BIGINT NOT NULL,',
    '  KEY delete_after (delete_after)',
    ') ENGINE = InnoDB',
  ].join('\n');
}

export function mysqlTable(database: Database, table: string): SqlTable<string> {
  /** Whether the server is known to run `BOUNDED`. */
  let isBounded = false;

  async function rows(sql: string): Promise<Timed<readonly FoundRow[]>> {
    const found = await explained(table, database.rows(sql));
    isBounded = Number(found[0]?.is_bounded) === 1;
    return {
      value: found.filter((row) => row.lock_key != null).map(foundIn),
      atMs: Number(found[0]?.now_us) / 1_000,
    };
  }

  async function change(sql: string): Promise<Timed<number>> {
    const { stamp, count } = await explained(table, database.change(sql));
    return stamp === 0 ? { value: 0, atMs: null } : { value: count, atMs: Math.floor(stamp / 2) / 1_000 };
  }

  async function write(sql: string): Promise<Timed<boolean>> {
    const { atMs } = await change(sql);
    return { value: atMs !== null, atMs };
  }

  const groups = new UpdateGroups({
    canGroup: () => isBounded && database.hasAutocommit,
    one: ({ key, row, seen }) =>
      write(
        `UPDATE ${table} SET version = ${hex(row.version)}, state = ${hex(row.state)}, ` +
          `delete_after = ${row.deleteAfter} + 0 * ${STAMP} WHERE lock_key = ${hex(key)} AND version = ${hex(seen)}`,
      ),
    async several(updates) {
      const keys = updates.map(({ key }) => hex(key));
      const each = (value: (update: Update) => string): string =>
        `CASE lock_key ${updates.map((one, at) => `WHEN ${keys[at]} THEN ${value(one)}`).join(' ')} END`;
      const isOther = `version <> ${each(({ seen }) => hex(seen))}`;
      // Everybody locks rows in the order of their keys, as the primary key has them. `version` is assigned last: it is compared before.
      const sql =
        `${BOUNDED} UPDATE ${table} FORCE INDEX (PRIMARY) SET state = ${each(({ row }) => hex(row.state))}, ` +
        `delete_after = ${each(({ row }) => String(row.deleteAfter))} + 0 * ${STAMP} + 0 * (${BIGINT_MAX} + (${isOther})), ` +
        `version = ${each(({ row }) => hex(row.version))} WHERE lock_key IN (${keys.join()})`;
      try {
        return await change(sql);
      } catch (error) {
        if (codeOf(error) === 'ER_DATA_OUT_OF_RANGE') return null;
        throw error;
      }
    },
    async versions(updates) {
      const keys = updates.map(({ key }) => hex(key)).join();
      const { value } = await rows(`${WITH_TIME} ${table} AS found ON lock_key IN (${keys})`);
      return new Map(value.map(({ key, version }) => [key, version]));
    },
  });

  /** Where there is no row, or one that may be deleted. Resolves with whether it was written. */
  function insert(key: string, row: NewRow): Promise<Timed<boolean>> {
    const [version, state] = [hex(row.version), hex(row.state)];
    // The stamp of the new row counts, unless the old row stays: then the last LAST_INSERT_ID is 0. In any order of SET.
    return write(
      `INSERT INTO ${table} (lock_key, version, state, delete_after) ` +
        `VALUES (${hex(key)}, ${version}, ${state}, ${row.deleteAfter} + 0 * ${STAMP}) ON DUPLICATE KEY UPDATE ` +
        `version = IF(${IS_OLD}, ${version}, version), state = IF(${IS_OLD}, ${state}, state), ` +
        `delete_after = IF(${IS_OLD}, ${row.deleteAfter}, delete_after + LAST_INSERT_ID(0 * delete_after))`,
    );
  }

  return {
    absent: ABSENT,
    async read(key) {
      const found = await rows(`${WITH_TIME} ${table} AS found ON lock_key = ${hex(key)}`);
      const [row] = found.value;
      const value = row ? { state: stateIn(row.state, key), version: row.version, lateMs: 0 } : ABSENT;
      return { value, atMs: found.atMs };
    },
    async replace(key, next, { version: seen }) {
      const row = rowOf(next);
      const { value: isWritten, atMs } = await (seen === ABSENT.version
        ? insert(key, row)
        : groups.update({ key, row, seen }));
      if (!isWritten) return { value: { kind: 'changed', found: null }, atMs };
      return { value: { kind: 'written', version: row.version, lateMs: 0 }, atMs };
    },
    async page(prefix, after, count) {
      const [begin, bytes] = [hex(prefix), Buffer.byteLength(prefix)];
      const wanted = `lock_key > ${hex(after ?? '')} AND lock_key >= ${begin} AND LEFT(lock_key, ${bytes}) = ${begin}`;
      const page = `SELECT * FROM ${table} WHERE ${wanted} ORDER BY lock_key LIMIT ${count}`;
      const { value, atMs } = await rows(`${WITH_TIME} (${page}) AS found ON TRUE ORDER BY lock_key`);
      return { value: value.map(({ key, state }) => ({ key, state: () => stateIn(state, key) })), atMs };
    },
    async time() {
      return { ...(await rows(`SELECT ${TIME}`)), value: null };
    },
    async cleanUp(count) {
      // Found without locks and deleted one by one, so that no range of keys is locked.
      const old = `SELECT * FROM ${table} WHERE ${IS_OLD} LIMIT ${count}`;
      const { value } = await rows(`${WITH_TIME} (${old}) AS found ON TRUE`);
      if (value.length === 0) return 0;
      const same = value.map(({ key, version }) => `lock_key = ${hex(key)} AND version = ${hex(version)}`);
      await change(`DELETE FROM ${table} WHERE ${same.join(' OR ')}`);
      return value.length;
    },
    probe: () => explained(table, probe(database, table)),
  };
}

/** Columns of bytes come as a Buffer. */
function foundIn({ lock_key, version, state }: Row): FoundRow {
  return { key: String(lock_key), version: String(version), state: String(state) };
}
