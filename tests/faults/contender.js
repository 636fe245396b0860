/**
 * One of the processes that contend for a key, with one contender or more: takes it, works, gives it back, again and
 * again, and says on its standard output when a turn begins and when it is over. Outages it lives through. When its
 * standard input ends it closes everything and ends by itself: whatever then keeps it alive is a fault.
 */
import { AcquireTimeoutError, createLocks, LeaseLostError, StoreError } from 'holdfast';
import { connect } from './drivers.js';
import { workUnder } from './turns.js';

/**
 * @typedef {object} Task
 * @property {import('./drivers.js').Driver} driver
 * @property {string} url
 * @property {string} [listenerUrl]
 * @property {string} name
 * @property {string} key
 * @property {number} ttlMs
 * @property {number} workMs
 * @property {number} longMs What one turn in `longEvery` takes.
 * @property {number} longEvery
 * @property {number} restMs For how long at most it leaves the key alone after a turn.
 * @property {number} waitMs
 * @property {number} contenders
 * @property {number} capacity
 * @property {boolean} abandons Whether to leave without waiting for the server.
 */

/** @type {Task} */
const task = JSON.parse(process.argv[2] ?? '{}');
const { name, key, ttlMs, workMs, longMs, longEvery, restMs, waitMs, capacity, contenders } = task;

process.on('unhandledRejection', (error) => {
  console.log('UNHANDLED', error);
  process.exitCode = 9;
});

const connection = await connect(task.driver, task);
const locks = createLocks(connection.store, { owner: name, ttl: ttlMs });
const lock = locks.semaphore(key, { capacity });

let turns = 0;

/** @param {string} who */
async function takeTurn(who) {
  const lease = await lock.acquire({ wait: waitMs });
  turns += 1;
  const began = (/** @type {import('./turns.js').Turn} */ turn) =>
    console.log(`began ${JSON.stringify(turn)}`);
  const turn = await workUnder(who, lease, turns % longEvery === 0 ? longMs : workMs, began);
  if (turn) console.log(`turn ${JSON.stringify(turn)}`);
  // P15: whoever is given a lease must have it at that moment.
  else console.log('EXPIRED a lease was returned that was over already');
  if (lease.state === 'lost') console.log('lost');
  await lease.release();
}

/** @param {string} who */
async function contend(who) {
  while (!over) {
    try {
      await takeTurn(who);
    } catch (error) {
      const expected = [StoreError, AcquireTimeoutError, LeaseLostError].some(
        (kind) => error instanceof kind,
      );
      if (!expected) throw error;
      console.log(`failed ${error instanceof Error ? error.message : error}`);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * restMs));
  }
}

let over = false;
process.stdin.on('end', () => {
  over = true;
});
process.stdin.resume();
console.log(`ready ${process.pid} ${new Date().toISOString()}`);
const names = Array.from({ length: contenders }, (_, at) => (contenders === 1 ? name : `${name}${at}`));
await Promise.all(names.map(contend));
await locks.close({ drain: 0 });
console.log('closed');
await (task.abandons ? connection.abandon() : connection.close());
// Only for the story of one that does not end: it keeps nothing alive itself.
setTimeout(() => console.log(`kept alive by ${process.getActiveResourcesInfo()}`), 5_000).unref();
