import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { migrated, openStoreWith } from './store-scene.js';

describe.runIf(available('postgres'))('locks on PostgreSQL over a faulty store', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
  });
  afterAll(() => server?.stop());

  const first = Math.floor(Math.random() * 1_000_000);

  it.each([first, first + 1])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const looking = await openStoreWith(server.url);
      const stores = await Promise.all([1, 2, 3, 4].map(() => openStoreWith(server.url)));
      const key = `faulty-${seed}`;
      await expectExclusion({ stores, key, seed, runMs: 4_000, ttlMs: [200, 800] }, looking);
      await looking.close();
    },
    60_000,
  );
});
