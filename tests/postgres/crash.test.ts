/** The server is killed under traffic. A grant, renewal or cool-down that was answered is kept; a release may be forgotten. */
import type { PostgresStoreOptions } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import type { Command, Store } from 'holdfast/protocol';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, holdOf, migrated, openStoreWith, query, releaseOf, renewOf, say } from './store-scene.js';

const ROUNDS = 3;
const USERS = 8;
const CYCLES_BEFORE_KILL = 40;

/** The last answers about a key. */
interface Known {
  /** The highest token that was answered. */
  token: number;
  /** Of the grant or renewal that was answered last; null once a release was sent. */
  expiresAt: number | null;
}

const TABLES: readonly { readonly title: string; readonly options: PostgresStoreOptions }[] = [
  { title: 'in our own table', options: {} },
  { title: 'in the table distributed_locks', options: { layout: distributedLocks } },
];

describe.runIf(available('postgres'))('a PostgreSQL server that is killed', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ own: true, fsync: true });
    for (const { options } of TABLES) await migrated(server.url, options);
  });

  afterAll(() => server?.stop());

  const opened = (options: PostgresStoreOptions): Promise<Store> =>
    openStoreWith(server.url, undefined, options);

  it.each(TABLES)(
    '$title, F10: keeps every grant and renewal that it answered, and no token is given twice',
    async ({ options }) => {
      const known = new Map<string, Known>();
      let number = 0;
      for (let round = 1; round <= ROUNDS; round++) {
        const store = await opened(options);
        const traffic = Array.from({ length: USERS }, (_, user) => use(store, `user-${round}-${user}`));
        await Promise.all(traffic.map(({ warm }) => warm));
        await server.kill();
        await Promise.all(traffic.map(({ ended }) => ended));
        await store.close();
        await server.restart();
        const again = await opened(options);
        for (const [key, { token, expiresAt }] of known) {
          const holder = (await again.read(key))?.holders[0];
          if (expiresAt !== null) {
            expect(holder?.token, key).toBe(token);
            expect(holder?.expiresAt, key).toBeGreaterThanOrEqual(expiresAt);
          }
          await say(again, { kind: 'evict', key, upToToken: Number.MAX_SAFE_INTEGER });
          number += 1;
          const next = await say(again, claimOf(key, holdOf('next', number)));
          if (next.kind !== 'granted') throw new Error(`${key}: ${next.kind}`);
          expect(next.token, key).toBeGreaterThan(token);
        }
        known.clear();
        await again.close();
      }

      /** Claims, renews and releases keys in turn until the server is gone. */
      function use(
        store: Store,
        name: string,
      ): { readonly warm: Promise<void>; readonly ended: Promise<void> } {
        let warmedUp = (): void => undefined;
        const warm = new Promise<void>((resolve) => {
          warmedUp = resolve;
        });
        const run = async (): Promise<void> => {
          for (let cycle = 0; ; cycle++) {
            const key = `default/${name}-${cycle % 5}`;
            const hold = holdOf(name, cycle + 1);
            const granted = await say(store, claimOf(key, hold, { ttlMs: 600_000 }));
            if (granted.kind !== 'granted') throw new Error(granted.kind);
            expect(granted.token).toBeGreaterThan(known.get(key)?.token ?? 0);
            known.set(key, { token: granted.token, expiresAt: granted.expiresAt });
            const renewed = await say(store, renewOf(key, hold, 900_000));
            if (renewed.kind !== 'renewed') throw new Error(renewed.kind);
            known.set(key, { token: granted.token, expiresAt: renewed.expiresAt });
            if (cycle === CYCLES_BEFORE_KILL) warmedUp();
            known.set(key, { token: granted.token, expiresAt: null });
            await say(store, releaseOf(key, hold));
          }
        };
        // The loop ends with the error of the lost connection; any other one fails the test.
        const ended = run().catch((error: unknown) => {
          warmedUp();
          if (error instanceof Error && error.name === 'AssertionError') throw error;
        });
        return { warm, ended };
      }
    },
  );

  it.each(TABLES)('$title: keeps a cool-down that is longer than the ttl', async ({ options }) => {
    const store = await opened(options);
    const keys = Array.from({ length: USERS }, (_, number) => `default/tick-${number}`);
    await Promise.all(keys.map((key) => say(store, claimOf(key, holdOf('tick')))));
    const minHoldMs = 600_000;
    await Promise.all(keys.map((key) => say(store, { ...releaseOf(key, holdOf('tick')), minHoldMs })));
    await server.kill();
    await store.close();
    await server.restart();
    const again = await opened(options);
    for (const key of keys) {
      const [holder] = (await again.read(key))?.holders ?? [];
      expect(holder, key).toMatchObject({ resting: true });
      expect((holder?.expiresAt ?? 0) - (holder?.acquiredAt ?? 0), key).toBe(minHoldMs);
    }
    await again.close();
  });

  it('waits for the disk with grants, renewals and cool-downs, with no other release or place in the queue, and always inside a longer transaction', async () => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const setting = async (commands: readonly Command[], ownTransaction = true): Promise<string> => {
      await client.query('BEGIN');
      await client.query('SELECT holdfast.apply($1::jsonb, 0, true, false, $2)', [
        JSON.stringify(commands),
        ownTransaction,
      ]);
      const { rows } = await client.query<{ synchronous_commit: string }>('SHOW synchronous_commit');
      await client.query('COMMIT');
      return rows[0]?.synchronous_commit ?? '';
    };
    const [one, two] = [holdOf('disk', 1), holdOf('disk', 2)];
    try {
      expect(await setting([claimOf('d1', one)])).toBe('on');
      expect(await setting([claimOf('d2', one), claimOf('d3', one)])).toBe('on');
      expect(await setting([renewOf('d1', one, 60_000)])).toBe('on');
      expect(await setting([releaseOf('d1', one), claimOf('d4', one)])).toBe('on');
      expect(await setting([claimOf('d1', two)])).toBe('on');
      expect(await setting([releaseOf('d1', two)], false)).toBe('on');
      expect(await setting([releaseOf('d2', one), releaseOf('d3', one)])).toBe('off');
      expect(await setting([releaseOf('d4', one)])).toBe('off');
      const next = claimOf('d5', two, { queue: true });
      expect(await setting([claimOf('d5', one)])).toBe('on');
      expect(await setting([next])).toBe('off');
      expect(await setting([releaseOf('d5', one)])).toBe('off');
      expect(await setting([next])).toBe('on');
      // Shared permits, which no quick case covers.
      const shared = (number: number) => claimOf('d6', holdOf('disk', number), { capacity: 2 });
      expect(await setting([shared(1)])).toBe('on');
      expect(await setting([shared(2)])).toBe('on');
      expect(await setting([renewOf('d6', two, 60_000)])).toBe('on');
      expect(await setting([releaseOf('d6', two)])).toBe('off');
      expect(await setting([claimOf('d7', one)])).toBe('on');
      expect(await setting([{ ...releaseOf('d7', one), minHoldMs: 60_000 }])).toBe('on');
      expect(await setting([{ kind: 'evict', key: 'd6', upToToken: Number.MAX_SAFE_INTEGER }])).toBe('on');
      await query(server.url, "SELECT holdfast.acquire_lock('plain', 'anna')");
      await client.query('BEGIN');
      await client.query("SELECT holdfast.release_lock('plain', 'anna')");
      expect((await client.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]);
      await client.query('COMMIT');
    } finally {
      await client.end();
    }
  });
});
