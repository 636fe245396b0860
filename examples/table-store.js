// @ts-check
/**
 * A store on one plain SQL table, through the compare-and-swap adapter. Here the table is in SQLite, so that the example
 * runs without a server; the same statements work on other SQL databases.
 *
 * Layout: one row per key: `state`, the state of the lock as JSON; `version`, a new random text with every write;
 * `delete_after`, when the row may be deleted.
 * Atomic: a row is inserted only if there is none, and updated only if its version is still the one that was read.
 * Clock: this machine's wall clock, so the store is for the processes of one machine.
 * A lost reply: the adapter sends the command again; the hold's id in the state shows whether it was applied.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { createLocks } from 'holdfast';
import { CompareAndSwap } from 'holdfast/compare-and-swap';
import { checkVersion, expendableAt, keysInOrder, snapshotOf } from 'holdfast/protocol';

/** @import { Store, State } from 'holdfast/protocol' */
/** @import { Found, Register } from 'holdfast/compare-and-swap' */
/** @typedef {{ state: string, version: string }} Row */

/** The version of a key without a row. @type {Found<string>} */
const ABSENT = { state: null, version: '', lateMs: 0 };

/** @param {string} path @returns {Store} */
export function tableStore(path) {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000');
  database.exec(
    'CREATE TABLE IF NOT EXISTS locks (key TEXT PRIMARY KEY, state TEXT, version TEXT, delete_after INTEGER)',
  );
  const select = database.prepare('SELECT state, version FROM locks WHERE key = ?');
  const insert = database.prepare('INSERT INTO locks VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING');
  const update = database.prepare(
    'UPDATE locks SET state = ?, version = ?, delete_after = ? WHERE key = ? AND version = ?',
  );
  const cleanUp = database.prepare('DELETE FROM locks WHERE delete_after < ?');
  const keys = database.prepare('SELECT key FROM locks');

  /** @param {string} key @returns {Found<string>} */
  function find(key) {
    const row = /** @type {Row | undefined} */ (select.get(key));
    if (!row) return ABSENT;
    /** @type {State} */
    const state = JSON.parse(row.state);
    // A newer library may have written it: then nothing is changed.
    checkVersion(state.version, key);
    return { state, version: row.version, lateMs: 0 };
  }

  /** @type {Register<string>} */
  const register = {
    absent: ABSENT,
    read: async (key) => find(key),
    async write(key, next, seen) {
      const state = JSON.stringify(next);
      const version = randomUUID();
      const deleteAfter = expendableAt(next);
      const { changes } =
        seen.version === ABSENT.version
          ? insert.run(key, state, version, deleteAfter)
          : update.run(state, version, deleteAfter, key, seen.version);
      if (changes === 0) return { kind: 'changed', found: find(key) };
      return { kind: 'written', version, lateMs: 0 };
    },
  };

  const time = {
    reading: () => ({ earliest: Date.now(), latest: Date.now() }),
    isFresh: () => true,
    sample: async () => undefined,
  };

  const swap = new CompareAndSwap(register, time, { name: 'table', queue: true });
  let isOpen = true;
  return {
    name: 'table',
    traits: {
      ...{ clock: 'machine', clockErrorMs: 0, shared: 'machine', durable: true },
      // Without wake-ups, waiters poll.
      ...{ push: false, queue: true, livenessPollMs: null },
    },
    apply: (commands) => swap.apply(commands),
    read: (key) => swap.read(key),
    async *list(query) {
      cleanUp.run(Date.now());
      const all = keys.all().map((row) => String(/** @type {{ key: string }} */ (row).key));
      const now = Date.now();
      let left = query.limit ?? Number.POSITIVE_INFINITY;
      // One by one: a record of a newer format is refused, and must not hide those before it.
      for (const key of keysInOrder(all, query)) {
        if (left <= 0) return;
        const snapshot = snapshotOf(key, find(key).state, now);
        if (!snapshot) continue;
        left -= 1;
        yield snapshot;
      }
    },
    async probe() {
      keys.get();
      const text = 'This machine’s wall clock decides: setting it by hand moves the ends of leases.';
      return { server: `SQLite table in ${path}`, now: Date.now(), findings: [{ level: 'note', text }] };
    },
    async close() {
      swap.close();
      if (isOpen) database.close();
      isOpen = false;
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const locks = createLocks(tableStore(':memory:'));
  await locks.withLock('report', (lease) => console.log(`alone with ${lease.key}, token ${lease.token}`));
  await locks.close();
}
