/**
 * One of the processes that count: takes the lock, reads the counter, pauses, writes one more. Says on its standard
 * output where it stands; ends when its standard input does. Never asks whether it still holds the lock: the guard,
 * or its absence, is what the test is about.
 *
 * The counter and the list of increments are written in one transaction, so a difference between them is an update
 * that another one overwrote.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseSync } from '@photostructure/sqlite';
import { AcquireTimeoutError, createLocks, LeaseLostError } from 'holdfast';
import { sqlGuard } from 'holdfast/fences';
import { sqliteStore } from 'holdfast/sqlite';

const [lockFile = '', counterFile = '', mode, ttlText] = process.argv.slice(2);
const guarded = mode === 'guarded';
const guard = sqlGuard();
const locks = createLocks(sqliteStore(lockFile), { ttl: Number(ttlText) });
const database = new DatabaseSync(counterFile);
database.exec('PRAGMA busy_timeout = 5000');

const stamp = database.prepare(`UPDATE counter SET ${guard.stamp()} WHERE ${guard.notStale()}`);
const read = database.prepare('SELECT n FROM counter');
const writeGuarded = database.prepare(`UPDATE counter SET n = ?, ${guard.stamp()} WHERE ${guard.notStale()}`);
const writeBare = database.prepare('UPDATE counter SET n = ?');
const log = database.prepare('INSERT INTO increments (token, pid) VALUES (?, ?)');

/**
 * @template T
 * @param {() => T} work
 */
function transaction(work) {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Stamping before reading makes every older holder's write fail from here on.
 *
 * @param {number} token
 */
function look(token) {
  return transaction(() => {
    if (guarded) guard.check(stamp.run(token, token).changes, token);
    return read.get().n;
  });
}

/**
 * @param {number} n
 * @param {number} token
 */
function write(n, token) {
  transaction(() => {
    if (guarded) guard.check(writeGuarded.run(n, token, token).changes, token);
    else writeBare.run(n);
    log.run(token, process.pid);
  });
}

async function countOnce() {
  const lease = await locks.acquire('counter', { wait: '20s' });
  try {
    const n = look(lease.token);
    console.log('inside');
    await sleep(20);
    write(n + 1, lease.token);
    console.log('wrote');
  } finally {
    await lease.release();
  }
}

let over = false;
process.stdin.on('end', () => {
  over = true;
});
process.stdin.resume();
console.log('ready');
while (!over) {
  try {
    await countOnce();
  } catch (error) {
    if (error instanceof LeaseLostError) console.log('refused');
    else if (!(error instanceof AcquireTimeoutError)) throw error;
  }
}
await locks.close({ drain: 0 });
