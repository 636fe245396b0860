import {
  available,
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrationOf, openStore } from '../../packages/holdfast/src/open-store.js';
import { openStore as openRedis } from '../../packages/holdfast/src/stores/redis/from-url.js';
import { REDIS_CLIENTS } from '../../packages/holdfast/src/stores/redis/open-client.js';
import { blocks } from '../repository/markdown.js';
import { useEverything } from './use-everything.js';

describe.runIf(available('redis'))('the rights that docs/stores/redis.md asks for are enough', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ own: true });
    const line = blocks.find(
      ({ page, code }) => page === 'docs/stores/redis.md' && /^ACL SETUSER/.test(code),
    );
    const [command = '', ...words] = line?.code.trim().split(/\s+/) ?? [];
    const admin = new Redis(server.port, server.host);
    await admin.call(command, ...words);
    admin.disconnect();
  });
  afterAll(async () => server?.stop());

  it.each(REDIS_CLIENTS.map(({ name }) => name))('with %s', async (name) => {
    const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
    const rest = `//locks:PASSWORD@${server.host}:${server.port}/1`;
    await useEverything(await openRedis('redis', rest, clients), await openRedis('redis', rest, clients));
  });
});

describe.runIf(available('postgres'))('the rights that docs/stores/postgres.md asks for are enough', () => {
  let server: PostgresServer;
  let url = '';

  beforeAll(async () => {
    server = await startPostgres({ own: true });
    url = await server.createDatabase();
    await (await migrationOf(url)).apply();
  });
  afterAll(async () => server?.stop());

  async function rows(text: string, user = 'postgres'): Promise<readonly unknown[]> {
    const client = new Client({ connectionString: as(user) });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }
  const as = (user: string): string => url.replace('postgres@', `${user}@`);

  it('for whoever uses the locks', async () => {
    const grants = blocks.find(({ page, code }) => page === 'docs/stores/postgres.md' && /^GRANT/.test(code));
    await rows('CREATE ROLE app LOGIN');
    await rows(grants?.code ?? '');
    await useEverything(await openStore(as('app')), await openStore(as('app')));
    expect(await rows("SELECT holdfast.acquire_lock('other', 'me') AS taken", 'app')).toEqual([
      { taken: true },
    ]);
    expect(await rows("SELECT holdfast.release_lock('other', 'me') AS given", 'app')).toEqual([
      { given: true },
    ]);
  });

  it('for whoever only looks', async () => {
    await rows('CREATE ROLE onlooker LOGIN');
    await rows('GRANT USAGE ON SCHEMA holdfast TO onlooker; GRANT SELECT ON holdfast.locks TO onlooker');
    await rows("SELECT holdfast.acquire_lock('seen', 'me', 30, '{\"why\": \"a test\"}')");
    expect(await rows('SELECT name, owner, metadata FROM holdfast.locks', 'onlooker')).toEqual([
      { name: 'seen', owner: 'me', metadata: { why: 'a test' } },
    ]);
    await expect(rows('SELECT * FROM holdfast.records', 'onlooker')).rejects.toThrow(/permission denied/);
  });
});
