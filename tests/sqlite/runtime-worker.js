/**
 * One of the processes that contend, on whatever runtime: takes the lock, writes down that it is in, works, writes down that
 * it is out, gives the lock back. All append to one journal, whose order of lines is the order of things. Ends when its
 * standard input does.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks } from 'holdfast';
import { sqliteStore } from 'holdfast/sqlite';

const [file = '', journal = '', ttlText, name] = process.argv.slice(2);
const locks = createLocks(sqliteStore(file), { ttl: Number(ttlText) });

/** @param {string} what @param {number} token */
const note = (what, token) => appendFileSync(journal, `${what} ${process.pid} ${name} ${token}\n`);

async function work() {
  const lease = await locks.acquire('k', { wait: '20s' });
  note('in', lease.token);
  await sleep(5);
  // Nothing is claimed of a turn that its holder knows to be over.
  if (lease.held) note('out', lease.token);
  else note('lost', lease.token);
  await lease.release();
}

let over = false;
process.stdin.on('end', () => {
  over = true;
});
process.stdin.resume();
console.log('ready');
while (!over) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
  }
}
await locks.close();
