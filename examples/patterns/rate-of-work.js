// @ts-check
/**
 * At most three calls to a slow partner at a time, over all instances: a semaphore. Who calls keeps a permit for at
 * least a second, so that it is at most three calls a second, too.
 *
 * For a fleet: HOLDFAST_STORE=redis://HOST.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const partner = locks.semaphore('partner', { capacity: 3 });

const call = (/** @type {number} */ order) =>
  partner.withLock(
    async ({ signal }) => {
      await sleep(100, undefined, { signal }); // the call
      console.log('sent', order, Date.now());
    },
    { wait: '1m', minHold: '1s' },
  );
await Promise.all([1, 2, 3, 4].map(call));
await locks.close();
