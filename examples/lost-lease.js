// @ts-check
/**
 * When a lease is lost. Two ways to lose one: an operator evicts the holder, or the ttl ends without a renewal.
 * Either way the signal aborts, and `withLock` never reports work as done under a lock that was gone.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, LeaseLostError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

const store = memoryStore();
const locks = createLocks(store, { owner: 'worker' });
const operator = createLocks(store, { owner: 'operator' });

// Evicted: work that listens to the signal stops at once.
const evicted = locks.withLock(
  'report',
  async (lease) => {
    await sleep(20_000, undefined, { signal: lease.signal });
  },
  { ttl: '3s' },
);
const stopped = assert.rejects(evicted, (error) => {
  const lost = error instanceof LeaseLostError ? error : error instanceof Error ? error.cause : undefined;
  console.log(`the work stopped: ${lost instanceof Error ? lost.message : lost}`);
  return lost instanceof LeaseLostError;
});
await sleep(50);
console.log(`the operator ended ${await operator.evict('report')} holder`);
await stopped;

// Outlived: work that does not listen runs on, and its result comes with the error.
const outlived = locks.withLock(
  'report',
  async () => {
    await sleep(600);
    return 'forty pages';
  },
  { ttl: '300ms', renew: false },
);
await assert.rejects(outlived, (error) => {
  assert.ok(error instanceof LeaseLostError);
  console.log(`too late: ${error.message} Its result was "${error.result}".`);
  return error.result === 'forty pages';
});
await locks.close();
