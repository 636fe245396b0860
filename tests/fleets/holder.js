/** Says "held" once it has the lock, "busy" when somebody else has it, "lost" when it loses it. Ends with its input. */
import { createLocks, openStore, StoreError } from 'holdfast';

const TRIES_MAX = 10;

const [url = '', name = '', ttlText] = process.argv.slice(2);
const locks = createLocks(await openStore(url), { owner: 'our-process' });

/** On a machine that has much to do, the first answers to a new process may come too late. */
async function acquire(tries = 1) {
  try {
    return await locks.tryAcquire(name, { ttl: Number(ttlText), wait: '1s' });
  } catch (error) {
    if (!(error instanceof StoreError) || tries === TRIES_MAX) throw error;
    return await acquire(tries + 1);
  }
}

const lease = await acquire();
lease?.signal.addEventListener('abort', () => console.log('lost'));
console.log(lease ? 'held' : 'busy');
process.stdin.resume();
process.stdin.on('end', () => locks.close({ drain: 0 }).then(() => process.exit(0)));
