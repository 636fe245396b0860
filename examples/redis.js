// @ts-check
/**
 * Three processes, as if on three machines, count to thirty in Redis. Each step reads and writes in two commands, so
 * that without the lock steps would be lost.
 *
 * REDIS_URL=redis://localhost:6379 node examples/redis.js
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createLocks } from 'holdfast';
import { redisStore } from 'holdfast/redis';
import { Redis } from 'ioredis';

const URL = process.env.REDIS_URL ?? 'redis://localhost:6379';
const PROCESSES = 3;
const STEPS = 10;

/** @param {string} counter */
async function work(counter) {
  const redis = new Redis(URL);
  const locks = createLocks(redisStore(redis));
  for (let step = 0; step < STEPS; step++) {
    await locks.withLock(counter, async (lease) => {
      const count = Number(await redis.get(counter));
      lease.assertHeld();
      await redis.set(counter, String(count + 1), 'EX', 60);
    });
  }
  await locks.close();
  redis.disconnect();
}

async function main() {
  const redis = new Redis(URL);
  const counter = `example:${process.pid}:${Date.now()}`;
  const workers = Array.from({ length: PROCESSES }, () => fork(import.meta.filename, ['worker', counter]));
  const exits = await Promise.all(workers.map((worker) => once(worker, 'exit')));
  assert.ok(
    exits.every(([code]) => code === 0),
    'every process ended well',
  );
  const count = Number(await redis.get(counter));
  await redis.del(counter);
  redis.disconnect();
  console.log(`${PROCESSES} processes counted to ${count}`);
  assert.equal(count, PROCESSES * STEPS, 'no step was lost');
}

const [, , role, counter] = process.argv;
await (role === 'worker' && counter ? work(counter) : main());
