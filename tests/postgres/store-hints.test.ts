/** Hints over LISTEN: what happens when nobody can hear them, when they are too many, and when hearing breaks. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import type { Store } from 'holdfast/protocol';
import { available, type PostgresServer, startPgbouncer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  claimOf,
  holdOf,
  migrated,
  OPENERS,
  openPool,
  openPostgresJs,
  openStoreWith,
  query,
  releaseOf,
  say,
} from './store-scene.js';

const HEARD_MS_MAX = 60_000;

/** Waits until it is so, asking the store now and then: a store mends what is broken when it is used. */
async function eventually(store: Store, what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + HEARD_MS_MAX;
  for (let asked = 1; !(await isSo()); asked++) {
    if (performance.now() > until) throw new Error(`not in time: ${what}`);
    await Promise.allSettled([say(store, claimOf('passing', holdOf('passing', asked)))]);
    await sleep(50);
  }
}

/** A hint from another connection to this inbox, heard or not. */
async function hint(from: Store, key: string, inbox: string, number: number): Promise<void> {
  const [holder, waiter] = [holdOf(`holder of ${key}`, number), holdOf(`waiter for ${key}`, number)];
  await say(from, claimOf(key, holder));
  await say(from, claimOf(key, waiter, { queue: true, inbox }));
  await say(from, releaseOf(key, holder));
  await say(from, releaseOf(key, waiter));
}

describe.runIf(available('postgres'))('hints on PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ own: true });
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  it.each(OPENERS)('inboxes of every length and spelling are heard, with $name', async ({ name, open }) => {
    const store = await openStoreWith(server.url, open);
    const other = await openStoreWith(server.url);
    for (const [index, inbox] of ['a', 'It\'s "odd"; ', 'ä'.repeat(40), 'x'.repeat(300)].entries()) {
      const heard: string[] = [];
      const stop = await store.listen?.(inbox, (key, why) => heard.push(`${why} ${key}`));
      const key = `${name} ${index} ${'k'.repeat(500)}`;
      await hint(other, key, inbox, 1);
      await eventually(store, `a hint for ${inbox}`, () => heard.includes(`turn ${key}`));
      await stop?.();
    }
    await Promise.all([store.close(), other.close()]);
  });

  it.each(OPENERS.filter(({ name }) => name !== 'a Client of pg'))(
    'F15: a listening connection that the server ends is made again, with $name',
    async ({ open }) => {
      const store = await openStoreWith(server.url, open);
      const other = await openStoreWith(server.url);
      let heard = 0;
      const said: boolean[] = [];
      const count = (): void => {
        heard += 1;
      };
      const stop = await store.listen?.(`ended-${open.name}`, count, (hearing) => said.push(hearing));
      for (let round = 1; round <= 2; round++) {
        const before = heard;
        await eventually(store, `a hint in round ${round}`, async () => {
          await hint(other, `ended ${open.name}`, `ended-${open.name}`, Math.ceil(performance.now()));
          return heard > before;
        });
        const ended = await query(
          server.url,
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'listen%'",
        );
        expect(ended.length).toBeGreaterThan(0);
      }
      // What is mended without a word being missed need not be told.
      expect(said.filter((_, index) => index % 2 === 0)).not.toContain(true);
      expect(said.filter((_, index) => index % 2 === 1)).not.toContain(false);
      if (open === openPool) expect(said).toContain(false);
      await stop?.();
      await Promise.all([store.close(), other.close()]);
    },
  );

  it.each([
    { name: 'a Pool of pg', open: openPool },
    { name: 'postgres', open: openPostgresJs },
  ])('F15: hints are heard again after a restart of the server, with $name', async ({ open }) => {
    const own = await startPostgres({ own: true });
    await migrated(own.url);
    const store = await openStoreWith(own.url, open);
    const other = await openStoreWith(own.url);
    let heard = 0;
    const said: boolean[] = [];
    const count = (): void => {
      heard += 1;
    };
    const stop = await store.listen?.('restarted', count, (hearing) => said.push(hearing));
    await own.kill();
    const down = await Promise.allSettled([say(store, claimOf('k', holdOf('p')))]);
    expect(down[0]?.status).toBe('rejected');
    await own.restart();
    await eventually(store, 'a hint after the restart', async () => {
      const number = Math.ceil(performance.now());
      await Promise.allSettled([hint(other, 'restarted', 'restarted', number)]);
      return heard > 0;
    });
    await eventually(store, 'word that hints are heard again', () => said.at(-1) === true);
    expect(said[0]).toBe(false);
    await stop?.();
    await Promise.all([store.close(), other.close()]);
    await own.stop();
  });

  it('closing does not wait for a server that does not answer', async () => {
    const own = await startPostgres({ own: true });
    const pool = new pg.Pool({ connectionString: own.url });
    pool.on('error', () => undefined);
    await migrated(own.url);
    const [heard, asked] = [postgresStore(pool), postgresStore(pool)];
    const stop = await heard.listen?.('inbox', () => undefined);
    await own.pause();
    const listening = Promise.allSettled([asked.listen?.('inbox', () => undefined)]);
    await Promise.all([stop?.(), heard.close(), asked.close()]);
    expect((await listening)[0]?.status).toBe('rejected');
    await own.resume();
    await pool.end();
    await own.stop();
  });

  describe.runIf(available('pgbouncer'))('behind PgBouncer in transaction mode', () => {
    it.each([
      { name: 'a Pool of pg', open: openPool },
      { name: 'postgres', open: openPostgresJs },
    ])('F15: waiters come to their turn though nothing is heard, with $name', async ({ open }) => {
      const bouncer = await startPgbouncer({ target: server.url, mode: 'transaction' });
      const users = await Promise.all(
        [0, 1].map(async () => createLocks(await openStoreWith(bouncer.url, open))),
      );
      const [one, two] = users;
      for (let round = 0; round < 3; round++) {
        const lease = await one?.acquire('pooled', { ttl: 5_000 });
        const waiting = two?.acquire('pooled', { wait: 20_000 });
        await sleep(100);
        await lease?.release();
        const next = await waiting;
        expect(next?.token).toBeGreaterThan(lease?.token ?? Number.MAX_SAFE_INTEGER);
        await next?.release();
      }
      await Promise.all(users.map((user) => user.close({ drain: 0 })));
      await bouncer.stop();
    });

    it('F15: a direct connection given as the listener is heard', async () => {
      const bouncer = await startPgbouncer({ target: server.url, mode: 'transaction' });
      const { client, end } = await openPool(bouncer.url);
      const store = postgresStore(client, {
        listener: () => new pg.Client({ connectionString: server.url }),
      });
      const heard: string[] = [];
      const stop = await store.listen?.('direct', (key) => heard.push(key));
      await hint(store, 'through', 'direct', 1);
      await eventually(store, 'a hint', () => heard.includes('through'));
      await stop?.();
      await store.close();
      await end();
      await bouncer.stop();
    });
  });
});

describe.runIf(available('postgres-18'))('a queue of hints that is full', () => {
  it('costs the wake-ups, never the commands', async () => {
    const server = await startPostgres({ version: '18', settings: { max_notify_queue_pages: '64' } });
    await migrated(server.url);
    const store = await openStoreWith(server.url, openPool, { listener: false });
    // Whoever listens and then sleeps in a transaction keeps everything in the queue.
    const sleeper = new pg.Client({ connectionString: server.url });
    await sleeper.connect();
    await sleeper.query('LISTEN something');
    await sleeper.query('BEGIN');
    await sleeper.query('SELECT 1');
    const filler = new pg.Client({ connectionString: server.url });
    await filler.connect();
    const fill = "SELECT pg_notify('something', repeat('x', 7000) || i) FROM generate_series(1, 20) AS i";
    let full: unknown = null;
    for (let filled = 0; filled < 100 && full === null; filled++) {
      await filler.query(fill).catch((error: unknown) => {
        full = error;
      });
    }
    expect(String(full)).toMatch(/NOTIFY queue/);
    await hint(store, 'full', 'nobody', 1);
    const two = await Promise.all(
      store.apply([claimOf('full', holdOf('after', 2)), claimOf('other', holdOf('after', 2))]),
    );
    expect(two.map(({ kind }) => kind)).toEqual(['granted', 'granted']);
    await sleeper.end();
    await filler.end();
    await store.close();
    await server.stop();
  });
});
