/** Clean-up in moved time: rows are made as old as the minute that `store-cleanup.long.test.ts` waits for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EVICTION_MS } from 'holdfast/protocol';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, holdOf, migrated, openStoreWith, query, releaseOf, say } from './store-scene.js';

const LOCKS = 2_000;
const TRIES_MAX = 20;

describe.runIf(available('postgres'))('records on PostgreSQL whose time is over', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  it('P12: are deleted by commands on another key, and held ones stay', async () => {
    const store = await openStoreWith(server.url);
    await say(store, claimOf('held', holdOf('held'), { ttlMs: 300_000 }));
    const names = Array.from({ length: LOCKS }, (_, index) => ({
      key: `once-${index}`,
      hold: holdOf('once', index + 1),
    }));
    await Promise.all(store.apply(names.map(({ key, hold }) => claimOf(key, hold))));
    await Promise.all(store.apply(names.map(({ key, hold }) => releaseOf(key, hold))));
    await query(server.url, 'UPDATE holdfast.records SET delete_after = delete_after - 120000');
    const keys = async (): Promise<string[]> =>
      (await query<{ key: string }>(server.url, 'SELECT key FROM holdfast.records')).map(({ key }) => key);
    for (let tried = 0; tried < TRIES_MAX && (await keys()).length > 1; tried++) {
      await say(store, claimOf('held', holdOf('somebody else')));
      await sleep(500);
    }
    expect(await keys()).toEqual(['held']);
    await store.close();
  });

  it('have an eviction for ten minutes, however long the evicted hold would have lived', async () => {
    const store = await openStoreWith(server.url);
    await say(store, claimOf('evicted', holdOf('a'), { ttlMs: 3_600_000 }));
    await say(store, { kind: 'evict', key: 'evicted', upToToken: Number.MAX_SAFE_INTEGER });
    const [row] = await query<{ until: string; decided: string }>(
      server.url,
      "SELECT evictions->0->>'until' AS until, decision / 1000 AS decided FROM holdfast.records WHERE key = 'evicted'",
    );
    expect(Number(row?.until) - Number(row?.decided)).toBe(EVICTION_MS);
    await store.close();
  });
});
