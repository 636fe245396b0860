// @ts-check
/**
 * Watching a program's locks. `on` is for the program itself; the same events are on `node:diagnostics_channel`
 * for a logger or a metrics library that knows nothing of this program.
 */
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

/** @type {string[]} */
const seen = [];
for (const name of ['acquired', 'waiting', 'released', 'lost']) {
  subscribe(`holdfast:${name}`, (message) => {
    const { key, owner } = /** @type {{ key: string, owner: string }} */ (message);
    seen.push(name);
    console.log(`holdfast:${name} ${key} by ${owner}`);
  });
}

const store = memoryStore();
const a = createLocks(store, { owner: 'a' });
const b = createLocks(store, { owner: 'b' });

let waitedMs = 0;
const stop = b.on('acquired', (event) => {
  waitedMs = event.waitedMs;
});

const lease = await a.acquire('invoice:9');
const next = b.acquire('invoice:9', { wait: '20s' });
await sleep(200);
await lease.release();
await (await next).release();
stop();
await a.close();

console.log(`b waited ${Math.round(waitedMs)} ms`);
assert.deepEqual(seen.slice(0, 2), ['acquired', 'waiting']);
assert.equal(seen.filter((name) => name === 'acquired').length, 2);
assert.equal(seen.filter((name) => name === 'released').length, 2);
assert.ok(!seen.includes('lost'));
assert.ok(waitedMs >= 150);
