// @ts-check
/**
 * A cache entry that expired, and everybody wants it at once. One caller of one process makes it; all others get what
 * it made.
 *
 * For a fleet: HOLDFAST_STORE=redis://HOST, and the cache in Redis, too.
 */
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const get = async () => (existsSync('prices.txt') ? readFile('prices.txt', 'utf8') : undefined);

async function create() {
  console.log('making the price list');
  await sleep(300); // expensive
  await writeFile('prices.new', 'apples 3');
  await rename('prices.new', 'prices.txt'); // nobody reads half of it
  return 'apples 3';
}

const requests = Array.from({ length: 50 }, () => locks.getOrCreate('prices', { get, create }));
console.log(new Set(await Promise.all(requests)).size, 'price list for', requests.length, 'requests');
await locks.close();
