import {
  available,
  type PostgresServer,
  startPgbouncer,
  startPostgres,
  startPostgrest,
} from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { accepts, childrenOf, expectGone, isLinux, letterOf, within } from './processes.js';

const VERSIONS = ['15', '18'] as const;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(async () => client.end());
  return client;
}

async function scalar(client: pg.Client, sql: string): Promise<unknown> {
  const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
  return rows[0]?.[0];
}

for (const version of VERSIONS) {
  describe.runIf(available(`postgres-${version}`))(`a private PostgreSQL of the kind ${version}`, () => {
    let server: PostgresServer;

    beforeAll(async () => {
      server = await startPostgres({ version });
    });
    afterAll(() => server?.stop());

    it('answers, and says its version', async () => {
      const client = await connect(server.url);
      expect(await scalar(client, 'SHOW server_version')).toContain(server.version);
      if (version === '18') expect(server.version).toMatch(/^18\./);
    });

    it('makes empty databases', async () => {
      const [first, second] = [await server.createDatabase(), await server.createDatabase()];
      await (await connect(first)).query('CREATE TABLE things ()');
      expect(await scalar(await connect(second), "SELECT to_regclass('things')")).toBeNull();
    });

    it('keeps what was committed through a restart and through a kill', async () => {
      const database = await server.createDatabase();
      const insert = async (): Promise<void> => {
        await (await connect(database)).query('INSERT INTO things VALUES (1)');
      };
      await (await connect(database)).query('CREATE TABLE things (a int)');
      const { pid, port } = server;
      await insert();
      await server.restart();
      await insert();
      const backends = isLinux ? childrenOf(server.pid) : [];
      await server.kill();
      expect(await accepts(server)).toBe(false);
      for (const backend of backends) await expectGone(backend);
      await server.restart();
      expect(server.port).toBe(port);
      expect(server.pid).not.toBe(pid);
      expect(await scalar(await connect(database), 'SELECT count(*) FROM things')).toBe('2');
    });

    it('pauses with all its backends, and answers afterwards what was asked meanwhile', async () => {
      const client = await connect(server.url);
      const backend = Number(await scalar(client, 'SELECT pg_backend_pid()'));
      await server.pause();
      const reply = scalar(client, 'SELECT 1');
      expect(await within(300, reply)).toBe('no answer');
      if (isLinux) {
        const family = [server.pid, ...childrenOf(server.pid)].filter((pid) => letterOf(pid) !== undefined);
        expect(family).toContain(backend);
        expect(family.map(letterOf)).toEqual(family.map(() => 'T'));
      }
      await server.resume();
      expect(await reply).toBe(1);
    });

    it('is gone after stop, even if it was paused', async () => {
      const other = await startPostgres({ version });
      const family = [other.pid, ...(isLinux ? childrenOf(other.pid) : [])];
      await other.pause();
      await other.stop();
      for (const pid of family) await expectGone(pid);
      expect(await accepts(other)).toBe(false);
    });
  });
}

describe.runIf(available('postgres', { own: true }))('a PostgreSQL', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres({ settings: { max_connections: '30' } });
  });
  afterAll(() => server?.stop());

  it('has the settings that were asked for', async () => {
    const client = await connect(server.url);
    expect(await scalar(client, 'SHOW max_connections')).toBe('30');
    expect(await scalar(client, 'SHOW fsync')).toBe('off');
  });

  it('that the user named is used as it is, and databases made in it are dropped', async () => {
    vi.stubEnv('HOLDFAST_TEST_POSTGRES_URL', server.url);
    onTestFinished(() => void vi.unstubAllEnvs());
    const theirs = await startPostgres();
    expect(theirs.url).toBe(server.url);
    const made = new URL(await theirs.createDatabase()).pathname.slice(1);
    const count = async (): Promise<unknown> =>
      scalar(await connect(server.url), `SELECT count(*) FROM pg_database WHERE datname = '${made}'`);
    expect(await count()).toBe('1');
    await expect(theirs.restart()).rejects.toThrow('own: true');
    await theirs.stop();
    expect(await count()).toBe('0');
  });

  it.runIf(available('pgbouncer'))('stands behind PgBouncer, which shares its backends', async () => {
    const target = await server.createDatabase();
    const bouncer = await startPgbouncer({
      target,
      mode: 'transaction',
      settings: { default_pool_size: '1' },
    });
    onTestFinished(() => bouncer.stop());
    const [first, second] = [await connect(bouncer.url), await connect(bouncer.url)];
    const backend = 'SELECT pg_backend_pid()';
    expect(await scalar(first, backend)).toBe(await scalar(second, backend));
    expect(await scalar(first, 'SELECT current_database()')).toBe(new URL(target).pathname.slice(1));
    await bouncer.restart();
    expect(await scalar(await connect(bouncer.url), 'SELECT 1')).toBe(1);
    await bouncer.stop();
    await expectGone(bouncer.pid);
  });

  it.runIf(available('postgrest'))('stands behind PostgREST, which calls its functions', async () => {
    const database = await server.createDatabase();
    const client = await connect(database);
    await client.query(`
      CREATE ROLE visitor; CREATE ROLE gate LOGIN; GRANT visitor TO gate;
      CREATE SCHEMA api; GRANT USAGE ON SCHEMA api TO visitor;
      CREATE FUNCTION api.twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'`);
    const databaseUrl = database.replace('postgres@', 'gate@');
    const rest = await startPostgrest({ databaseUrl, schemas: ['api'], anonRole: 'visitor' });
    onTestFinished(() => rest.stop());
    const twice = async (): Promise<unknown> => {
      const headers = { 'content-type': 'application/json' };
      return (await fetch(`${rest.url}/rpc/twice`, { method: 'POST', headers, body: '{"n":4}' })).json();
    };
    expect(await twice()).toBe(8);
    await rest.restart();
    expect(await twice()).toBe(8);
    await rest.stop();
    await expectGone(rest.pid);
  });
});
