import { join } from 'node:path';
import { closeRun, ensureInstalled, openRun, shareServers } from 'holdfast-test-servers';
import type { TestProject } from 'vitest/node';
import { publishedCommand } from './published-command.js';

/** Once for a run, before its workers start: two of them must not install the same thing. */
export default async function setup({ name }: TestProject): Promise<() => Promise<void>> {
  await ensureInstalled([
    'redis',
    'postgres-15',
    'pgbouncer',
    'nats',
    'mariadb',
    'etcd',
    'dynamodb',
    'firestore',
    'chromium',
    'zsh',
    'fish',
  ]);
  // Tools that check the files of deploy/.
  if (name === 'long') await ensureInstalled(['prometheus', 'systemd-analyze']);
  const run = openRun();
  process.env.HOLDFAST_TEST_COMMAND = await publishedCommand(join(run, 'command'));
  const stopSharing = await shareServers();
  return async () => {
    await stopSharing();
    closeRun(run);
  };
}
