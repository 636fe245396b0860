import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { migrationOf } from '../../packages/holdfast/src/open-store.js';
import { StoreError, UnsupportedError } from '../../packages/holdfast/src/protocol/index.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';
import { openStore as openPostgres } from '../../packages/holdfast/src/stores/postgres/from-url.js';
import { POSTGRES_CLIENTS } from '../../packages/holdfast/src/stores/postgres/open-client.js';

const opened: Store[] = [];

/** For a moment after its end a server's port takes connections all the same, and breaks them. */
async function failureOf(store: Store): Promise<string> {
  return store.read('job').then(
    () => 'no failure',
    (error: Error) => error.message,
  );
}

let server: PostgresServer;

describe.runIf(available('postgres'))('postgres:', () => {
  beforeAll(async () => {
    server = await startPostgres({ own: true });
  });
  afterAll(async () => server?.stop());
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });

  async function rows(text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }
  const connections = async (): Promise<number> =>
    (await rows("SELECT 1 FROM pg_stat_activity WHERE application_name = 'holdfast'")).length;

  describe.each(POSTGRES_CLIENTS.map(({ name }) => name))('with %s', (name) => {
    const clients = POSTGRES_CLIENTS.filter((candidate) => candidate.name === name);

    async function open(url: string): Promise<Store> {
      const store = await openPostgres('postgres', url.replace('postgres:', ''), clients);
      opened.push(store);
      return store;
    }

    it('keeps locks in the schema that the URL names, and closes what it opened', async () => {
      const url = `${await server.createDatabase()}?schema=my%20locks`;
      expect(await (await migrationOf(url)).apply()).toEqual({ from: 0, to: expect.any(Number), notes: [] });
      const locks = createLocks(await open(url));
      await locks.withLock('job', async (lease) => {
        expect(lease.held).toBe(true);
        expect(await connections()).toBeGreaterThan(0);
      });
      await locks.close({ drain: 0 });
      await expect.poll(connections).toBe(0);
    });

    it('says that a schema is missing, and how to make it', async () => {
      const store = await open(await server.createDatabase());
      const reading = store.read('job');
      await expect(reading).rejects.toThrow(UnsupportedError);
      await expect(reading).rejects.toThrow(/holdfast migrate/);
    });

    it('says that there is no such database', async () => {
      const store = await open(server.url.replace(/\/postgres$/, '/nowhere'));
      await expect(store.read('job')).rejects.toThrow(/database does not exist/);
    });

    it('says that a server has no TLS', async () => {
      const store = await open(`${server.url}?sslmode=require`);
      await expect(store.read('job')).rejects.toThrow();
    });

    it('goes on by itself when the server was restarted', async () => {
      const url = await server.createDatabase();
      await (await migrationOf(url)).apply();
      const locks = createLocks(await open(url));
      await locks.withLock('before', () => undefined);
      await server.restart();
      await using lease = await locks.acquire('after', { wait: 15_000 });
      expect(lease.held).toBe(true);
      await locks.close({ drain: 0 });
    });

    it('opens though nobody is there, says so in words, and works once somebody is', async () => {
      const url = await server.createDatabase();
      await (await migrationOf(url)).apply();
      await server.kill();
      const store = await open(url);
      await expect.poll(() => failureOf(store)).toMatch(/^nothing listens at .* is the server running/);
      const locks = createLocks(store);
      const failed: unknown = await locks.acquire('job', { wait: 300 }).catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(StoreError);
      expect((failed as StoreError).cause).toMatchObject({
        message: expect.stringMatching(/^nothing listens/),
      });
      await server.restart();
      await using lease = await locks.acquire('job', { wait: 15_000 });
      expect(lease.held).toBe(true);
      await locks.close({ drain: 0 });
    });
  });

  it('does not wait for ever for a server that hangs, neither on opening nor on closing', async () => {
    await server.pause();
    try {
      const store = await openPostgres('postgres', server.url.replace('postgres:', ''));
      await expect(store.read('job')).rejects.toThrow(/does not answer/);
      await store.close();
    } finally {
      await server.resume();
    }
  });
});

describe.runIf(available('postgres'))('a migration', () => {
  it('of a server that is not there says so in words', async () => {
    const migration = await migrationOf('postgres://me:secret@127.0.0.1:1/db');
    const applying = migration.apply();
    await expect(applying).rejects.toThrow(/^nothing was migrated: nothing listens at 127\.0\.0\.1:1/);
    await expect(applying).rejects.toThrow(StoreError);
  });
});
