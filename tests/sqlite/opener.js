/** Opens the file at a given moment of the machine's clock, so that many do it at once, and claims a key of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { sqliteStore } from 'holdfast/sqlite';

const [file = '', moment = ''] = process.argv.slice(2);
const leftMs = () => Number((BigInt(moment) - process.hrtime.bigint()) / 1_000_000n);
await sleep(Math.max(leftMs() - 5, 0));
while (leftMs() > 0);
const locks = createLocks(sqliteStore(file));
const lease = await locks.acquire(`own-${process.pid}`);
await lease.release();
await locks.close({ drain: 0 });
console.log('done');
