import { closeRun, ensureInstalled, openRun } from 'holdfast-test-servers';

/** Once for a run, before its workers start: two of them must not install the same thing. */
export default async function setup(): Promise<() => void> {
  await ensureInstalled([
    'redis',
    'postgres-15',
    'pgbouncer',
    'nats',
    'mariadb',
    'dynamodb',
    'firestore',
    'chromium',
    'zsh',
    'fish',
  ]);
  const run = openRun();
  return () => closeRun(run);
}
