// @ts-check
/**
 * A report at three every night, on three instances: each has the same schedule, and one of them runs it. This one runs
 * every two seconds, so that there is something to see.
 *
 * For a fleet: HOLDFAST_STORE=postgres://HOST/DATABASE, and '0 3 * * *' with { timeZone: 'Europe/Berlin' } as the
 * schedule (npm install croner).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';
import { schedule } from 'holdfast/schedule';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const nightly = schedule(locks, 'report', { every: '2s' }, async (_lease, tick) => {
  console.log('report of', tick.toISOString());
});
await sleep(9_000); // the life of the service
await nightly.stop();
await locks.close();
