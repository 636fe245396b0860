// @ts-check
/**
 * Naming keys. One key is one thing that must not be worked on twice. A namespace keeps programs apart, parts from
 * outside are encoded, and two spellings of one letter are one key.
 */
import assert from 'node:assert/strict';
import { createLocks, InvalidArgumentError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const billing = createLocks(store, { namespace: 'billing', owner: 'billing' });
const shipping = createLocks(store, { namespace: 'shipping', owner: 'shipping' });

/** Builds a key of parts. A colon inside a part cannot make two different lists of parts one key. */
const keyOf = (/** @type {string[]} */ ...parts) => parts.map(encodeURIComponent).join(':');
assert.notEqual(keyOf('file', 'a:b', 'c'), keyOf('file', 'a', 'b:c'));
console.log(keyOf('file', 'a:b', 'c'), 'is not', keyOf('file', 'a', 'b:c'));

// The same name in two namespaces: two keys.
const ours = await billing.acquire('order:123');
const theirs = await shipping.tryAcquire('order:123');
assert.ok(theirs, 'another namespace, another key');
console.log('billing and shipping each hold their own order:123');

// The same name twice in one namespace: one key, whoever asks.
const colleague = createLocks(store, { namespace: 'billing', owner: 'colleague' });
assert.equal(await colleague.tryAcquire('order:123'), null, 'one namespace, one key');

// "é" as one code point and as two: one key.
const composed = await billing.acquire('caf\u00e9');
assert.equal(await colleague.tryAcquire('cafe\u0301'), null, 'two spellings, one key');
console.log(`two spellings of ${composed.key} are one key`);

// A prefix finds what belongs together.
const held = [];
for await (const info of billing.list({ prefix: 'order:' })) held.push(info.key);
console.log('held orders of billing:', held);
assert.deepEqual(held, ['order:123']);

// What cannot be a key is refused before anything is sent.
for (const key of ['', 'tab\there', 'x'.repeat(10_000)]) {
  await assert.rejects(billing.acquire(key), InvalidArgumentError);
}
console.log('empty, control character, overlong: refused');

await Promise.all([ours.release(), theirs.release(), composed.release()]);
await billing.close();
