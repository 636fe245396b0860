// @ts-check
/**
 * Readers together, a writer alone. Readers of two callers hold the key at the same time. A writer waits for them,
 * and readers that come after it wait behind it: a stream of readers cannot keep a writer out.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const here = createLocks(store, { owner: 'here', wait: '20s' }).readWrite('config');
const there = createLocks(store, { owner: 'there', wait: '20s' }).readWrite('config');

/** @type {string[]} */
const order = [];

const first = await here.read.acquire();
const second = await there.read.acquire();
console.log('two readers hold the key together');
assert.ok(first.held && second.held);
assert.equal(await there.write.tryAcquire(), null, 'no writer beside readers');

const writer = here.write.withLock(async () => {
  order.push('writer');
  await sleep(50);
});
await sleep(50);
const late = there.read.withLock(async () => {
  order.push('late reader');
});
await sleep(50);
assert.deepEqual(order, [], 'both wait');

await Promise.all([first.release(), second.release()]);
await Promise.all([writer, late]);
await store.close();

console.log(`then came: ${order.join(', ')}`);
assert.deepEqual(order, ['writer', 'late reader']);
