/**
 * Takes a key and hands it off: says the handoff on its standard output. Holds a second key all the time. Then it ends
 * as told: by itself with a word to the store ('closes') or without ('exits'), or not at all ('stays').
 */
import { createLocks, openStore } from 'holdfast';

const [url = '', key = '', ttl = '', ending] = process.argv.slice(2);
const locks = createLocks(await openStore(url));
await locks.acquire(`${key}-kept`, { ttl: Number(ttl) });
const lease = await locks.acquire(key, { ttl: Number(ttl) });
console.log(`token ${lease.token}`);
console.log(`handoff ${await lease.handoff()}`);
if (ending === 'closes') await locks.close({ drain: 0 });
if (ending === 'stays') process.stdin.resume().on('end', () => process.exit());
else process.exit();
