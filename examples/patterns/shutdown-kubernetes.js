// @ts-check
/**
 * Shutdown under Kubernetes. A pod that is deleted gets SIGTERM, and 30 seconds later SIGKILL. `closeOn` takes no new
 * locks from then on, lets running work end within 25 seconds, releases everything, and lets the signal end the process:
 * the next pod goes on at once instead of after the ttl.
 *
 * For a fleet: HOLDFAST_STORE=redis://HOST; terminationGracePeriodSeconds longer than the drain.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
locks.closeOn(process, { drain: '25s' });
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());

for (let piece = 1; piece <= 20 && !stopping.signal.aborted; piece++) {
  await locks.withLock('mail', async ({ signal }) => {
    await sleep(100, undefined, { signal }); // one piece of work
    console.log('piece', piece);
  });
}
await locks.close();
