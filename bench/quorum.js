/**
 * An uncontended acquire and release on one Redis, on a quorum of three, and with redlock on the same three, in turns:
 * `node bench/quorum.js`. Prints the median and the 99th percentile of a cycle in microseconds.
 */
import { createLocks } from 'holdfast';
import { enrolMembers, quorumStore } from 'holdfast/quorum';
import { redisStore } from 'holdfast/redis';
import { closeRun, openRun, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import Redlock from 'redlock-5';

const ROUNDS = 10;
const CYCLES = 300;
const TTL_MS = 30_000;

const run = openRun();
const servers = await Promise.all([1, 2, 3].map(() => startRedis({ own: true })));
const clients = servers.map(({ host, port }) => new Redis({ host, port }));
await enrolMembers(clients);
const [first] = clients;
if (!first) throw new Error('No client.');
const single = createLocks(redisStore(first));
const quorum = createLocks(quorumStore(clients));
const redlock = new Redlock(clients, { retryCount: 0 });

/** @param {import('holdfast').Locks} locks @param {string} key */
const cycleOf = async (locks, key) => {
  const lease = await locks.acquire(key, { ttl: TTL_MS });
  await lease.release();
};
/** @param {string} key */
const redlockCycle = async (key) => {
  const lock = await redlock.acquire([key], TTL_MS);
  await lock.release();
};

let keys = 0;
/** @type {readonly [name: string, cycle: () => Promise<void>][]} */
const contenders = [
  ['one Redis, the same key', () => cycleOf(single, 'k')],
  ['one Redis, always a new key', () => cycleOf(single, `k${++keys}`)],
  ['quorum of three, the same key', () => cycleOf(quorum, 'k')],
  ['quorum of three, always a new key', () => cycleOf(quorum, `k${++keys}`)],
  ['redlock on three, the same key', () => redlockCycle('redlock')],
  ['redlock on three, always a new key', () => redlockCycle(`redlock${++keys}`)],
];
/** @type {Map<string, number[]>} */
const tookUs = new Map(contenders.map(([name]) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, cycle] of contenders) {
    for (let count = 0; count < CYCLES; count++) {
      const sinceMs = performance.now();
      await cycle();
      if (round > 0) tookUs.get(name)?.push((performance.now() - sinceMs) * 1_000);
    }
  }
}
for (const [name, all] of tookUs) {
  all.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => Math.round(all[Math.floor(all.length * share)] ?? 0);
  console.log(`${name.padEnd(36)} p50 ${at(0.5)} µs, p99 ${at(0.99)} µs`);
}

await single.close();
await quorum.close();
for (const client of clients) client.disconnect();
await Promise.all(servers.map((server) => server.stop()));
closeRun(run);
