// @ts-check
/**
 * Graceful shutdown. On SIGTERM a worker takes no new work, finishes the piece in hand, and closes its locks: every
 * lease is released and every wait ends. The next process goes on at once instead of after the ttl.
 *
 * A process that is killed outright releases nothing. Then the ttl decides, or, on SQLite, the proof that it is gone.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

/** @param {string} url */
async function work(url) {
  const locks = createLocks(await openStore(url), { owner: 'worker' });
  const stopping = new AbortController();
  process.once('SIGTERM', () => stopping.abort());

  await locks.withLock(
    'queue:mail',
    async (lease) => {
      process.send?.('holding');
      let pieces = 0;
      while (!stopping.signal.aborted && lease.held) {
        await sleep(200);
        pieces += 1;
      }
      console.log(`worker: told to stop, finished piece ${pieces}`);
    },
    { ttl: '5m', signal: stopping.signal },
  );
  await locks.close();
  process.disconnect();
}

/** @param {string} folder */
async function main(folder) {
  const url = `sqlite:${join(folder, 'locks.db')}`;
  const worker = fork(import.meta.filename, ['worker', url]);
  const exit = once(worker, 'exit');
  await Promise.race([once(worker, 'message'), exit]);

  const locks = createLocks(await openStore(url), { owner: 'next' });
  assert.equal(await locks.tryAcquire('queue:mail'), null, 'the worker has it');
  const next = locks.acquire('queue:mail', { wait: '1m' });
  await sleep(300);

  const asked = Date.now();
  worker.kill('SIGTERM');
  const [[code], lease] = await Promise.all([exit, next]);
  const afterMs = Date.now() - asked;
  console.log(`next: had the lock ${afterMs} ms after SIGTERM, at a ttl of 5 minutes`);
  await lease.release();
  await locks.close();

  assert.equal(code, 0, 'the worker ended by itself');
  assert.ok(afterMs < 20_000, 'nobody waited for the ttl');
}

const [, , role, url] = process.argv;
if (role === 'worker' && url) await work(url);
else {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-shutdown-'));
  await main(folder).finally(() => rmSync(folder, { recursive: true, force: true }));
}
