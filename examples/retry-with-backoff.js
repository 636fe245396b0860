// @ts-check
/**
 * Retry with backoff. For work that may be dropped or put back: ask, wait longer each time, give up after a few.
 * Where the caller can wait, `wait` is better than a loop: it waits in the queue and is woken.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, StoreError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const other = createLocks(store, { owner: 'other' });
const locks = createLocks(store, { owner: 'me' });

/**
 * Null when all attempts met a busy lock. An outage is retried too, and thrown if it lasts; a wrong call is not.
 * @param {string} key
 * @param {{ attempts: number, baseMs: number }} options
 */
async function acquireWithBackoff(key, { attempts, baseMs }) {
  for (let attempt = 0; ; attempt++) {
    const last = attempt === attempts - 1;
    try {
      const lease = await locks.tryAcquire(key);
      if (lease || last) return lease;
    } catch (error) {
      if (!(error instanceof StoreError) || last) throw error;
    }
    const pauseMs = baseMs * 2 ** attempt * (0.5 + Math.random() / 2);
    console.log(`attempt ${attempt + 1}: busy, again in ${Math.round(pauseMs)} ms`);
    await sleep(pauseMs);
  }
}

/** The other one holds the key for so long. @param {number} ms */
async function occupy(ms) {
  const lease = await other.acquire('mailbox');
  return { done: sleep(ms).then(() => lease.release()) };
}

const kept = await other.acquire('mailbox');
assert.equal(await acquireWithBackoff('mailbox', { attempts: 3, baseMs: 20 }), null);
console.log('gave up after 3 attempts');
await kept.release();

const brief = await occupy(400);
const lease = await acquireWithBackoff('mailbox', { attempts: 8, baseMs: 50 });
assert.ok(lease, 'had it in the end');
console.log(`acquired by retrying, token ${lease.token}`);
await lease.release();
await brief.done;

const again = await occupy(400);
const started = Date.now();
const queued = await locks.tryAcquire('mailbox', { wait: '20s' });
assert.ok(queued, 'had it by waiting');
console.log(`acquired by waiting in the queue, after ${Date.now() - started} ms`);
await queued.release();
await again.done;
await locks.close();
