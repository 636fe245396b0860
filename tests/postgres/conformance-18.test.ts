import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, migrated, openPool, openPostgresJs, runSuite } from './store-scene.js';

describe.runIf(available('postgres-18'))('PostgreSQL 18', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ version: '18' });
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  const url = (): string => server.url;
  runSuite(harnessOf('PostgreSQL 18 with a Pool of pg', url, openPool), 1_000);
  runSuite(harnessOf('PostgreSQL 18 with postgres', url, openPostgresJs), 100, { when: 'model' });
});
