/** Says "held" once it has the lock, "busy" when somebody else has it, "lost" when it loses it. Ends with its input. */
import { createLocks, openStore } from 'holdfast';

const [url = '', name = '', ttlText] = process.argv.slice(2);
const locks = createLocks(await openStore(url), { owner: 'our-process' });
const lease = await locks.tryAcquire(name, { ttl: Number(ttlText) });
lease?.signal.addEventListener('abort', () => console.log('lost'));
console.log(lease ? 'held' : 'busy');
process.stdin.resume();
process.stdin.on('end', () => locks.close().then(() => process.exit(0)));
