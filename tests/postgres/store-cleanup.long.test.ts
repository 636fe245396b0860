/** Records of locks that nobody uses any more go away by the way. */
import { setTimeout as sleep } from 'node:timers/promises';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, holdOf, migrated, openStoreWith, query, releaseOf, say } from './store-scene.js';

const LOCKS = 10_000;
const BATCH = 500;
const WITHIN_MS = 120_000;

describe.runIf(available('postgres'))('records on PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  it(
    'P12: ten thousand locks used once are gone within two minutes, with hardly any traffic',
    async () => {
      const store = await openStoreWith(server.url);
      const held = holdOf('held');
      await say(store, claimOf('held', held, { ttlMs: 300_000 }));
      const count = async (): Promise<number> => {
        const rows = await query<{ count: number }>(
          server.url,
          'SELECT count(*)::int AS count FROM holdfast.records',
        );
        return rows[0]?.count ?? -1;
      };
      const before = await count();
      for (let from = 0; from < LOCKS; from += BATCH) {
        const names = Array.from({ length: BATCH }, (_, index) => ({
          key: `once-${from + index}`,
          hold: holdOf('once', from + index + 1),
        }));
        await Promise.all(store.apply(names.map(({ key, hold }) => claimOf(key, hold))));
        await Promise.all(store.apply(names.map(({ key, hold }) => releaseOf(key, hold))));
      }
      expect(await count()).toBe(before + LOCKS);
      const since = performance.now();
      while ((await count()) > before && performance.now() - since < WITHIN_MS) {
        await say(store, claimOf('held', holdOf('somebody else')));
        await sleep(500);
      }
      expect(await count()).toBe(before);
      expect((await store.read('held'))?.holders).toHaveLength(1);
      await store.close();
    },
    WITHIN_MS + 60_000,
  );

  it('a lock taken and given back over and over rewrites its row in place', async () => {
    const store = await openStoreWith(server.url);
    for (let number = 1; number <= 300; number++) {
      await say(store, claimOf('again', holdOf('again', number)));
      await say(store, releaseOf('again', holdOf('again', number)));
    }
    await store.close();
    // Counted a moment after the connection that did it has ended.
    let counts = { updated: 0, inPlace: 0 };
    for (let asked = 0; asked < 50 && counts.updated < 590; asked++) {
      await sleep(200);
      const text = `SELECT n_tup_upd::int AS updated, n_tup_hot_upd::int AS "inPlace"
        FROM pg_stat_user_tables WHERE schemaname = 'holdfast' AND relname = 'records'`;
      counts = (await query<typeof counts>(server.url, text))[0] ?? counts;
    }
    expect(counts.updated).toBeGreaterThanOrEqual(590);
    expect(counts.inPlace / counts.updated).toBeGreaterThan(0.9);
  });
});
