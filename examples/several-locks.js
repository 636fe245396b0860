// @ts-check
/**
 * Several locks at once. Transfers go both ways between two accounts. Taken one by one, in the order in which each
 * transfer names them, two transfers wait for each other. `all` takes them in one order everywhere, all or none.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const first = createLocks(store, { owner: 'first', wait: '20s' });
const second = createLocks(store, { owner: 'second', wait: '20s' });

/**
 * The wrong way: holds one account while it waits for the other.
 * @param {import('holdfast').Locks} locks
 * @param {string} from
 * @param {string} to
 */
async function oneByOne(locks, from, to) {
  return locks.withLock(from, async () => {
    await sleep(100);
    return locks.withLock(to, async () => 'done', { wait: '500ms' });
  });
}

const outcomes = await Promise.allSettled([
  oneByOne(first, 'account:ann', 'account:bob'),
  oneByOne(second, 'account:bob', 'account:ann'),
]);
const stuck = outcomes.filter(({ status }) => status === 'rejected');
console.log(`one by one: ${stuck.length} of 2 transfers gave up waiting for the other`);
assert.ok(stuck.length >= 1, 'they stood in each other’s way');
for (const outcome of outcomes) {
  if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof AcquireTimeoutError);
}

const balance = new Map([
  ['account:ann', 100],
  ['account:bob', 100],
]);

/**
 * @param {import('holdfast').Locks} locks
 * @param {string} from
 * @param {string} to
 */
async function transfer(locks, from, to) {
  await locks.all([from, to]).withLock(async (group) => {
    const [less, more] = [(balance.get(from) ?? 0) - 1, (balance.get(to) ?? 0) + 1];
    await sleep(2);
    group.assertHeld();
    balance.set(from, less).set(to, more);
  });
}

const transfers = Array.from({ length: 20 }, () => [
  transfer(first, 'account:ann', 'account:bob'),
  transfer(second, 'account:bob', 'account:ann'),
]);
await Promise.all(transfers.flat());
console.log(`all: 40 transfers both ways, balances ${[...balance.values()].join(' and ')}`);
assert.deepEqual([...balance.values()], [100, 100], 'no update was lost');
await first.close();
