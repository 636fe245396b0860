// @ts-check
/**
 * A migration at start. Every instance runs this before it serves: the first one migrates, the others wait until it is
 * done and find nothing left to do. `maxHold` ends a migration that hangs.
 *
 * For a fleet: HOLDFAST_STORE=postgres://HOST/DATABASE, or any other store that all instances reach.
 */
import { appendFile, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, openStore } from 'holdfast';

const locks = createLocks(await openStore(process.env.HOLDFAST_STORE ?? 'sqlite:locks.db'));
const versions = async () => (await readFile('versions.txt', 'utf8').catch(() => '')).split('\n');

await locks.withLock(
  'migrate',
  async (lease) => {
    if ((await versions()).includes('v2')) return console.log('up to date');
    await sleep(300, undefined, { signal: lease.signal }); // the migration
    lease.assertHeld();
    await appendFile('versions.txt', 'v2\n');
    console.log('migrated');
  },
  { wait: '5m', maxHold: '10m' },
);
await locks.close();
