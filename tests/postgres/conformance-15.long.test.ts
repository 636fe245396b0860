import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, migrated, openClient, openPool, openPostgresJs, runSuite } from './store-scene.js';

describe.runIf(available('postgres-15'))('PostgreSQL 15', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ version: '15' });
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  const url = (): string => server.url;
  runSuite(harnessOf('PostgreSQL 15 with a Pool of pg', url, openPool), 300, { when: 'long-run' });
  runSuite(harnessOf('PostgreSQL 15 with a Client of pg', url, openClient), 100, { when: 'long-run' });
  runSuite(harnessOf('PostgreSQL 15 with postgres', url, openPostgresJs), 100, { when: 'long-run' });
});
