// @ts-check
/**
 * A singleton cron task. Three instances have the same timetable and clocks that differ a little. One of them runs
 * the task at each tick, whichever comes first.
 *
 * The task is shorter than the clocks are apart, so a plain lock would be free again when the slowest clock strikes.
 * `minHold` keeps the key taken for so long after the grant, however early the task is done.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const EVERY_MS = 1_000;
const TICKS = 3;

const store = memoryStore();
const start = Date.now() + 100;
/** @type {string[]} */
const runs = [];
let turnedAway = 0;

/**
 * @param {string} name
 * @param {number} clockErrorMs
 */
async function instance(name, clockErrorMs) {
  const locks = createLocks(store, { owner: name });
  for (let tick = 0; tick < TICKS; tick++) {
    await sleep(start + tick * EVERY_MS + clockErrorMs - Date.now());
    const lease = await locks.tryAcquire('cron:clean-up', { ttl: '30s', minHold: EVERY_MS / 2 });
    if (!lease) {
      turnedAway += 1;
      continue;
    }
    try {
      await sleep(10);
      runs.push(`tick ${tick}`);
      console.log(`tick ${tick}: ${name} ran the task, token ${lease.token}`);
    } finally {
      await lease.release();
    }
  }
}

await Promise.all([instance('alpha', 60), instance('beta', 0), instance('gamma', 120)]);
await store.close();

assert.deepEqual(runs, ['tick 0', 'tick 1', 'tick 2'], 'one run at each tick');
assert.equal(turnedAway, 2 * TICKS, 'the other two were turned away each time');
console.log(`${runs.length} runs, ${turnedAway} instances turned away`);
