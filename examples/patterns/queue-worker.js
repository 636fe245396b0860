// @ts-check
/**
 * A queue without a broker: jobs are files in a folder, and every worker looks at all of them. A job that somebody else
 * works on is passed over; one that is done is gone.
 *
 * For a fleet: HOLDFAST_STORE=redis://HOST, and the jobs in a place that all workers reach.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
await mkdir('jobs', { recursive: true });

for (const job of await readdir('jobs')) {
  await locks.tryWithLock(`job:${job}`, async (lease) => {
    // Looked at again under the lock: another may have done it meanwhile.
    if (!existsSync(`jobs/${job}`)) return;
    await sleep(20, undefined, { signal: lease.signal }); // the job
    console.log('did', job);
    await rm(`jobs/${job}`);
  });
}
await locks.close();
