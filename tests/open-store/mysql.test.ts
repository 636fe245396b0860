import { createLocks, migrationOf, openStore, StoreError } from 'holdfast';
import type { Store } from 'holdfast/protocol';
import { available, type MariadbServer, startMariadb, startProxy } from 'holdfast-test-servers';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { atTheEnd, clearScene, until } from '../scene.js';

describe.runIf(available('mariadb', { own: true }))('mysql: and mariadb:', () => {
  let server: MariadbServer;
  let url: string;
  beforeAll(async () => {
    server = await startMariadb({ own: true });
    url = await server.createDatabase();
  });
  afterEach(clearScene);
  afterAll(() => server?.stop());

  async function open(where: string): Promise<Store> {
    const store = await openStore(where);
    atTheEnd(() => store.close());
    return store;
  }

  async function sessions(): Promise<number> {
    const connection = await mysql.createConnection({ uri: url });
    const [rows] = await connection.query<RowDataPacket[]>(
      'SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE DB = DATABASE()',
    );
    connection.destroy();
    return Number(rows[0]?.n) - 1;
  }

  it('migrates, keeps locks in the table that the URL names, and ends what it opened', async () => {
    const place = `${url.replace('mysql:', 'mariadb:')}?table=my_locks`;
    await expect((await open(place)).read('default/job')).rejects.toThrow(
      /`my_locks` is not there.*holdfast migrate/,
    );
    const migration = await migrationOf(place);
    expect(migration).toMatchObject({ kind: 'table', name: 'my_locks' });
    expect(migration.script).toContain('CREATE TABLE IF NOT EXISTS `my_locks`');
    expect(await migration.apply()).toEqual({ from: 0, to: 1, notes: [] });
    expect(await migration.apply()).toEqual({ from: 1, to: 1, notes: [] });
    const store = await open(place);
    const locks = createLocks(store);
    const token = await locks.withLock('job', ({ token: own }) => own);
    expect(token).toBeGreaterThan(0);
    expect(await sessions()).toBeGreaterThan(0);
    await locks.close();
    await clearScene();
    await until(async () => (await sessions()) === 0, 'its connections have ended');
  });

  it('explains why a server cannot be used, without the password', async () => {
    const wrong = Object.assign(new URL(url), { username: 'me', password: 'hunter2' });
    for (const [where, words] of [
      [wrong.href, /refuses this user name and password/],
      [Object.assign(new URL(url), { pathname: '/nowhere' }).href, /database does not exist/],
      [Object.assign(new URL(url), { port: '1' }).href, /nothing listens at 127\.0\.0\.1:1/],
      [`${url}?sslmode=require`, /does not speak TLS/],
    ] as const) {
      const failure = await (await open(where)).read('default/job').then(
        () => 'no failure',
        (error: Error) => error.message,
      );
      expect(failure).toMatch(words);
      expect(failure).not.toContain('hunter2');
    }
    await expect(migrationOf(url, { supabase: true })).rejects.toThrow(/Supabase is PostgreSQL/);
    const migration = await migrationOf(Object.assign(new URL(url), { port: '1' }).href);
    await expect(migration.apply()).rejects.toThrow(StoreError);
    await expect(migration.apply()).rejects.toThrow(/the table was not made: nothing listens/);
  });

  it('closes in time where the server hangs, also while a connection is being made', async () => {
    await (await migrationOf(url)).apply();
    const proxy = await startProxy({ host: server.host, port: server.port });
    atTheEnd(() => proxy.stop());
    const store = await openStore(Object.assign(new URL(url), { port: String(proxy.port) }).href);
    await store.read('default/job');
    proxy.hang();
    const reading = Promise.allSettled([store.read('default/a'), store.read('default/b')]);
    await store.close();
    // Those that were under way are given up.
    expect((await reading).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
