// @ts-check
/**
 * A job processed once. Three processes walk through the same six jobs. Each job is done by exactly one of them.
 *
 * The lock says that nobody else is on the job now. It does not say that nobody did it before: the done mark does,
 * and it is looked at inside the lock.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const JOBS = ['a', 'b', 'c', 'd', 'e', 'f'];

/** @param {string} folder */
async function work(folder) {
  const log = (/** @type {string} */ line) => appendFileSync(join(folder, 'log'), `${line}\n`);
  const locks = createLocks(await openStore(`sqlite:${join(folder, 'locks.db')}`));
  for (const job of JOBS) {
    const lease = await locks.tryAcquire(`job:${job}`, { ttl: '30s' });
    if (!lease) {
      log(`${job} taken`);
      continue;
    }
    try {
      const mark = join(folder, `done-${job}`);
      if (existsSync(mark)) {
        log(`${job} done-before`);
        continue;
      }
      await sleep(100);
      lease.assertHeld();
      writeFileSync(mark, String(lease.token));
      log(`${job} processed`);
    } finally {
      await lease.release();
    }
  }
  await locks.close();
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-job-once-'));
  try {
    const workers = [1, 2, 3].map(() => fork(import.meta.filename, ['worker', folder]));
    const exits = await Promise.all(workers.map((worker) => once(worker, 'exit')));
    assert.deepEqual(
      exits.map(([code]) => code),
      [0, 0, 0],
      'every worker ended well',
    );

    const lines = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n');
    for (const job of JOBS) {
      const outcomes = lines.filter((line) => line.startsWith(`${job} `)).map((line) => line.slice(2));
      console.log(`job ${job}: ${outcomes.join(', ')}`);
      assert.equal(outcomes.length, 3, 'three workers looked at it');
      assert.equal(outcomes.filter((outcome) => outcome === 'processed').length, 1, 'one processed it');
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [, , role, folder] = process.argv;
await (role === 'worker' && folder ? work(folder) : main());
