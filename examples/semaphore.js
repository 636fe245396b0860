// @ts-check
/**
 * A semaphore: at most three at once, over all processes together. Two callers have four tasks each; no more than
 * three run at the same time. A large task takes two permits of the three.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const callers = ['one', 'two'].map((owner) => createLocks(store, { owner, wait: '20s' }));

let taken = 0;
let most = 0;

/**
 * @param {import('holdfast').Locks} locks
 * @param {number} permits
 */
async function upload(locks, permits) {
  const slots = locks.semaphore('uploads', { capacity: 3 });
  await slots.withLock(
    async () => {
      taken += permits;
      most = Math.max(most, taken);
      await sleep(50);
      taken -= permits;
    },
    { permits },
  );
}

await Promise.all(callers.flatMap((locks) => [1, 1, 2, 1].map((permits) => upload(locks, permits))));
await store.close();

console.log(`8 uploads, at most ${most} permits taken at once`);
assert.equal(taken, 0);
assert.ok(most <= 3, 'never more than the capacity');
assert.ok(most >= 2, 'but more than one at a time');
