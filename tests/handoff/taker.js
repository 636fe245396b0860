/**
 * Adopts the lease whose handoff is the first line of its standard input, and holds it until that ends. Says "ready",
 * "adopted", "lost", "released".
 */
import { createInterface } from 'node:readline';
import { createLocks, openStore } from 'holdfast';

const [url = ''] = process.argv.slice(2);
const locks = createLocks(await openStore(url));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
console.log('ready');
const { value: handoff } = await lines.next();
const lease = await locks.adopt(handoff);
lease.signal.addEventListener('abort', () => console.log('lost'));
console.log(`adopted ${lease.token}`);
await lines.next();
lease.assertHeld();
await lease.release();
console.log('released');
await locks.close({ drain: 0 });
