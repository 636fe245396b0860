// @ts-check
/**
 * Long work that renews itself. The work takes three times the ttl. The lease renews itself in the background, and
 * the next waiter waits until the release.
 *
 * A short ttl is no risk for long work: it only says how soon others may go on when this process dies.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const mine = createLocks(store, { owner: 'importer' });
const theirs = createLocks(store, { owner: 'next' });

let renewals = 0;
mine.on('renewed', ({ remainingMs }) => {
  renewals += 1;
  console.log(`renewed, certain for another ${Math.round(remainingMs)} ms`);
});

/** Works in steps, and stops at once when the lease is lost. @param {AbortSignal} signal */
async function importEverything(signal) {
  for (let step = 1; step <= 6; step++) {
    await sleep(500, undefined, { signal });
    signal.throwIfAborted();
  }
  return 6;
}

const started = Date.now();
const work = mine.withLock('import:customers', (lease) => importEverything(lease.signal), { ttl: '1s' });
await sleep(50);
assert.equal(await theirs.tryAcquire('import:customers'), null, 'held by the importer');

const next = theirs.acquire('import:customers', { wait: '30s' });
const steps = await work;
const lease = await next;
const waitedMs = Date.now() - started;
console.log(`${steps} steps done; the next waiter had the lock after ${waitedMs} ms`);
await lease.release();
await mine.close();

assert.ok(waitedMs >= 2_900, 'nobody came in while the work ran');
assert.ok(renewals >= 2, 'the lease was renewed on the way');
