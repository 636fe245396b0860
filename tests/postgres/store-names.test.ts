/** Statements have names, where connections stay the same; where they do not, none. */
import { createLocks } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import { available, type PostgresServer, startPgbouncer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrated } from './store-scene.js';

describe.runIf(available('postgres'))('named statements', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
  });
  afterAll(() => server.stop());

  it('the server parses what is said once a connection', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const locks = createLocks(postgresStore(pool, { listener: false }));
    for (let round = 0; round < 10; round++) await locks.withLock('named', () => undefined);
    const { rows } = await pool.query('SELECT name FROM pg_prepared_statements');
    const named = { name: expect.stringMatching(/^holdfast_[0-9a-f]+$/) };
    // One that claims, and one that releases.
    expect(rows).toEqual([named, named]);
    await locks.close({ drain: 0 });
    await pool.end();
  });

  it.runIf(available('pgbouncer'))(
    'F15: behind a pooler that changes connections under us nothing fails',
    async () => {
      const settings = { default_pool_size: '3', server_reset_query_always: '0' };
      const bouncer = await startPgbouncer({ target: server.url, mode: 'transaction', settings });
      const pool = new pg.Pool({ connectionString: bouncer.url, max: 8 });
      pool.on('error', () => undefined);
      const said: Promise<unknown>[] = [];
      const store = postgresStore(pool, { listener: false });
      const watched = {
        ...store,
        apply: (commands: Parameters<typeof store.apply>[0]) => {
          const replies = store.apply(commands);
          said.push(...replies);
          return replies;
        },
      };
      const locks = createLocks(watched);
      for (let round = 0; round < 20; round++) {
        const each = Array.from({ length: 16 }, async (_, key) => {
          // In statements of their own, so that several connections are used at once.
          await new Promise((resolve) => setTimeout(resolve, key));
          await locks.withLock(`pooled ${key}`, () => undefined);
        });
        await Promise.all(each);
      }
      const outcomes = await Promise.allSettled(said);
      expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
      expect(outcomes.length).toBeGreaterThan(300);
      await locks.close({ drain: 0 });
      await pool.end();
      await bouncer.stop();
    },
  );
});
