// @ts-check
/**
 * A migration at start. Every instance runs this before it serves: the first one migrates, the others wait until it is
 * done and find nothing left to do. `maxHold` ends a migration that hangs.
 *
 * For a fleet: HOLDFAST_STORE=postgres://HOST/DATABASE, or any other store that all instances reach.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));

/** @param {import('holdfast').Lease} lease */
async function migrate(lease) {
  if (existsSync('v2.txt')) return console.log('up to date');
  await sleep(300, undefined, { signal: lease.signal }); // the migration
  lease.assertHeld();
  await writeFile('v2.txt', `token ${lease.token}`);
  console.log('migrated');
}

await locks.withLock('migrate', migrate, { wait: '5m', maxHold: '10m' });
await locks.close();
