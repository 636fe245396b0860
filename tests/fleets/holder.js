/** Says "busy" while somebody else has the lock, "held" once it has it, "lost" when it loses it. Ends with its input. */
import { createLocks, openStore } from 'holdfast';

const [url = '', name = '', ttlText] = process.argv.slice(2);
const locks = createLocks(await openStore(url), { owner: 'our-process' });
process.stdin.resume();
process.stdin.on('end', () => locks.close({ drain: 0 }).then(() => process.exit(0)));

locks.on('waiting', () => console.log('busy'));
const lease = await locks.acquire(name, { ttl: Number(ttlText), wait: '2m' });
lease.signal.addEventListener('abort', () => console.log('lost'));
console.log('held');
