/** Clients on top of pg: what to pass to the store. A client that renames columns. PGlite: a PostgreSQL without a server. */
import { Socket } from 'node:net';
import { PGlite } from '@electric-sql/pglite';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createLocks } from 'holdfast';
import { migrate, type PostgresClient, postgresStore } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import type { Harness } from 'holdfast/testkit';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import knex from 'knex';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { poolOn } from '../guards/takeover.js';
import { runSuite } from '../store-talk.js';
import { migrated, type Opener } from './store-scene.js';

const CLIENTS: Readonly<Record<string, { readonly open: Opener; readonly isPushed: boolean }>> = {
  'the connections of knex': {
    isPushed: false,
    async open(url) {
      const db = knex({ client: 'pg', connection: url });
      const client: PostgresClient = {
        async query(query) {
          const connection = await db.client.acquireConnection();
          try {
            return await connection.query(query);
          } finally {
            await db.client.releaseConnection(connection);
          }
        },
      };
      return { client, end: () => db.destroy() };
    },
  },
  'the pool of kysely': {
    isPushed: true,
    async open(url) {
      const pool = poolOn(url);
      const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
      await db.executeQuery(CompiledQuery.raw('SELECT 1'));
      return { client: pool, end: () => db.destroy() };
    },
  },
  'kysely itself': {
    isPushed: false,
    async open(url) {
      const db = new Kysely({ dialect: new PostgresDialect({ pool: poolOn(url) }) });
      const client: PostgresClient = {
        query: ({ text, values = [] }) => db.executeQuery(CompiledQuery.raw(text, values)),
      };
      return { client, end: () => db.destroy() };
    },
  },
  'the pool of drizzle': {
    isPushed: true,
    async open(url) {
      const db = drizzle(poolOn(url));
      return { client: db.$client, end: () => db.$client.end() };
    },
  },
};

async function useLocks(client: PostgresClient, isPushed: boolean): Promise<void> {
  const store = postgresStore(client);
  expect(store.traits.push).toBe(isPushed);
  const [first, second] = [createLocks(store), createLocks(postgresStore(client))];
  const order: string[] = [];
  const lease = await first.acquire('job');
  const waiting = second.withLock('job', ({ token }) => order.push(`second ${token > lease.token}`), {
    wait: '30s',
  });
  await expect.poll(async () => (await first.inspect('job'))?.waiters).toHaveLength(1);
  order.push('first');
  await lease.release();
  await waiting;
  expect(order).toEqual(['first', 'second true']);
  const listed: string[] = [];
  for await (const { key } of first.list()) listed.push(key);
  expect(listed).toEqual([]);
  expect((await first.probe()).server).toMatch(/^PostgreSQL/);
  await Promise.all([first.close(), second.close()]);
}

async function useLayout(client: PostgresClient): Promise<void> {
  const layout = distributedLocks;
  expect((await migrate(client, { layout })).from).toBe(0);
  const [locks, others] = [
    createLocks(postgresStore(client, { layout })),
    createLocks(postgresStore(client, { layout })),
  ];
  let last = 0;
  for (const user of [locks, others, locks]) {
    const lease = await user.acquire('job', { metadata: { job: "it's", path: 'a\\b' }, wait: '10s' });
    expect(lease.token).toBeGreaterThan(last);
    last = lease.token;
    for (const each of [locks, others]) expect(await each.tryAcquire('job')).toBeNull();
    await lease.renew();
    await lease.release();
  }
  await Promise.all([locks.close(), others.close()]);
}

describe.runIf(available('postgres'))('locks through a client on top of pg', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  it.each(Object.entries(CLIENTS))('%s', async (_name, { open, isPushed }) => {
    const { client, end } = await open(await migrated(await server.createDatabase()));
    await useLocks(client, isPushed);
    await end();
  });

  it.each(['a Pool', 'a Client'])(
    '%s: the connection for wake-ups sends keep-alives within a minute',
    async (name) => {
      const url = await server.createDatabase();
      const client = name === 'a Pool' ? new pg.Pool({ connectionString: url }) : new pg.Client(url);
      if (client instanceof pg.Client) await client.connect();
      const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
      onTestFinished(() => keepAlive.mockRestore());
      const store = postgresStore(client);
      await store.listen?.('inbox', () => undefined);
      const delays = keepAlive.mock.calls.map(([isOn, delayMs = 0]) => (isOn ? delayMs : 0));
      expect(delays).toHaveLength(1);
      expect(Math.min(...delays)).toBeGreaterThan(0);
      expect(Math.max(...delays)).toBeLessThanOrEqual(60_000);
      await store.close();
      await client.end();
    },
  );

  it('postgres that renames columns: locks, a migration, and the table of other software', async () => {
    const sql = postgres(await server.createDatabase(), {
      transform: postgres.pascal,
      onnotice: () => undefined,
    });
    expect(await migrate(sql)).toEqual({ from: 0, to: 1 });
    await useLocks(sql, true);
    await useLayout(sql);
    await sql.end();
  });
});

describe('PGlite', () => {
  let pglite: PGlite;
  beforeAll(async () => {
    pglite = new PGlite();
    expect((await migrate(pglite)).from).toBe(0);
    expect((await migrate(pglite)).from).toBeGreaterThan(0);
  });
  afterAll(() => pglite?.close());

  it('takes locks, and wakes waiters', async () => {
    await useLocks(pglite, true);
    const { findings } = await postgresStore(pglite).probe();
    expect(findings.map(({ text }) => text).join()).toContain('Wake-ups come by LISTEN');
  });

  it('takes locks in the table of other software', () => useLayout(pglite));

  it('keeps a command out of a transaction of the application', async () => {
    const locks = createLocks(postgresStore(pglite));
    let acquired = Promise.resolve<unknown>(null);
    await pglite.transaction(async (transaction) => {
      acquired = locks.acquire('apart');
      await transaction.query('SELECT 1');
      await transaction.rollback();
    });
    await acquired;
    expect((await locks.inspect('apart'))?.holders).toHaveLength(1);
    await locks.close({ drain: 0 });
  });

  const harness: Harness = {
    name: 'PGlite',
    open: async () => postgresStore(pglite),
    async forget(key) {
      await pglite.query('DELETE FROM holdfast.records WHERE key = $1', [key]);
    },
    async spoil(key) {
      await pglite.query('UPDATE holdfast.records SET version = 99 WHERE key = $1', [key]);
    },
  };
  runSuite(harness, 100, { when: 'long-run' });
});
