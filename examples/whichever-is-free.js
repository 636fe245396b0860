// @ts-check
/**
 * Whichever is free. Three tasks share two machines; each takes the first to be had. The third waits until either
 * is given back.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const MACHINES = ['machine:0', 'machine:1'];

const store = memoryStore();
/** @type {Set<string>} */
const inUse = new Set();
/** @type {string[]} */
const used = [];

/** @param {string} name */
async function task(name) {
  const locks = createLocks(store, { owner: name, wait: '20s' });
  await locks.any(MACHINES).withLock(async (lease) => {
    assert.ok(!inUse.has(lease.key), 'nobody else is on it');
    inUse.add(lease.key);
    used.push(lease.key);
    console.log(`${name} works on ${lease.key}`);
    await sleep(200);
    inUse.delete(lease.key);
  });
}

await Promise.all([task('first'), task('second'), task('third')]);
await store.close();
assert.equal(used.length, 3);
assert.deepEqual([...new Set(used.slice(0, 2))].sort(), MACHINES, 'the first two took one each');
