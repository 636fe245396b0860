/**
 * One process of a crowd, with many clients that share nothing: each has its own store. All wait for the same
 * key, hold it for a moment once, and say when they got it and when they gave it back. Ends with its standard input.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { machineMs } from '../faults/turns.js';
import { storesOn } from './stores.js';

const [url = '', key = '', clients = '', ttl = ''] = process.argv.slice(2);
const WORK_MS = 20;

const open = await storesOn(url);
const crowd = await Promise.all(
  Array.from({ length: Number(clients) }, async () => createLocks(await open())),
);
// Connections and code that was never used are slow: what is measured comes after that.
for (const locks of crowd) await locks.inspect(key);

/** @param {import('holdfast').Locks} locks */
async function waitForIt(locks) {
  const lease = await locks.acquire(key, { ttl: Number(ttl), wait: '10m' });
  console.log(`got ${machineMs()}`);
  await sleep(WORK_MS);
  console.log(`${lease.held ? 'gave' : 'lost'} ${machineMs()}`);
  await lease.release();
}

for (const locks of crowd) void waitForIt(locks);
console.log('waiting');
process.stdin.resume().on('end', () => process.exit());
