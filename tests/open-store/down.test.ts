/** Stores that are not there, or do not let anybody in: what is said, and how soon. Attempts are counted, not timed. */
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { PostgrestClient } from '@supabase/postgrest-js';
import {
  available,
  type NatsServer,
  type PostgresServer,
  type RedisServer,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { Client, Pool } from 'pg';
import postgres from 'postgres';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { openStore } from '../../packages/holdfast/src/open-store.js';
import { StoreError, UnsupportedError } from '../../packages/holdfast/src/protocol/index.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';
import { dynamodbStore } from '../../packages/holdfast/src/stores/dynamodb/index.js';
import { openStore as openPostgres } from '../../packages/holdfast/src/stores/postgres/from-url.js';
import { postgresStore } from '../../packages/holdfast/src/stores/postgres/index.js';
import { POSTGRES_CLIENTS } from '../../packages/holdfast/src/stores/postgres/open-client.js';
import { openStore as openRedis } from '../../packages/holdfast/src/stores/redis/from-url.js';
import { redisStore } from '../../packages/holdfast/src/stores/redis/index.js';
import { REDIS_CLIENTS } from '../../packages/holdfast/src/stores/redis/open-client.js';
import { supabaseStore } from '../../packages/holdfast/src/stores/supabase/index.js';
import { DatabaseSync } from '../sqlite/driver.js';

const SECRET = 'hunter2-secret';

interface Failed {
  readonly error: unknown;
  readonly message: string;
  readonly claims: number;
}

/** A port that was free a moment ago. */
async function deadPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** How an acquire fails, and how many claims that took. */
async function failureOf(store: Store, wait: string | number): Promise<Failed> {
  let claims = 1;
  let isRefused = false;
  const counting: Store = {
    ...store,
    apply: (commands) => {
      // An unanswered claim is sent again: on a busy machine that comes before the refusal, and is the same attempt.
      if (isRefused) claims += commands.filter(({ kind }) => kind === 'claim').length;
      const replies = store.apply(commands);
      for (const reply of replies) {
        reply.catch(() => {
          isRefused = true;
        });
      }
      return replies;
    },
  };
  const locks = createLocks(counting);
  try {
    await locks.tryAcquire('job', { wait: wait as `${number}s` });
  } catch (error) {
    return { error, message: error instanceof Error ? error.message : '', claims };
  } finally {
    await locks.close();
  }
  throw new Error('nothing failed');
}

function expectNotExecuted({ error, message }: Failed, words: RegExp): void {
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ outcome: 'not-executed', operation: 'acquire', key: 'job' });
  expect(message).toMatch(/^"job" was not acquired: /);
  expect(message).toMatch(words);
  expect(message).not.toContain(SECRET);
}

/** Before, a try took five to seven claims in two seconds. An SDK's own tries may take longer than one attempt. */
const CLAIMS_MAX = 3;

describe('where nothing listens, a try fails at once and says so:', () => {
  type Open = (port: number) => Promise<Store>;
  const cases: readonly (readonly [name: string, open: Open])[] = [
    ...REDIS_CLIENTS.map(
      (client) =>
        [
          `redis: with ${client.name}`,
          (port: number) => openRedis('redis', `//me:${SECRET}@127.0.0.1:${port}`, [client]),
        ] as const,
    ),
    ...POSTGRES_CLIENTS.map(
      (client) =>
        [
          `postgres: with ${client.name}`,
          (port: number) => openPostgres('postgres', `//me:${SECRET}@127.0.0.1:${port}/db`, [client]),
        ] as const,
    ),
    ['nats:', (port) => openStore(`nats://me:${SECRET}@127.0.0.1:${port}`)],
    ['http:', (port) => openStore(`http://${SECRET}@127.0.0.1:${port}`)],
    [
      'dynamodb:',
      (port) => openStore(`dynamodb://key:${SECRET}@eu-west-1/locks?endpoint=http://127.0.0.1:${port}`),
    ],
  ];

  it.each(cases)('%s', async (_name, open) => {
    const port = await deadPort();
    const failed = await failureOf(await open(port), 0);
    expectNotExecuted(
      failed,
      new RegExp(`nothing listens at .*127\\.0\\.0\\.1:${port}.* is the server running`),
    );
    expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
  });

  it('a Redis of ioredis with its own settings, which keeps commands until it is connected', async () => {
    const client = new Redis(await deadPort(), '127.0.0.1');
    client.on('error', () => undefined);
    const failed = await failureOf(redisStore(client), 0);
    client.disconnect();
    expectNotExecuted(failed, /nothing listens at 127\.0\.0\.1:\d+.*ECONNREFUSED/);
    expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
  });

  it('a client of node-redis with its own settings', async () => {
    const client = createClient({ socket: { host: '127.0.0.1', port: await deadPort() } });
    client.on('error', () => undefined);
    const connecting = Promise.allSettled([client.connect()]);
    const failed = await failureOf(redisStore(client), 0);
    client.destroy();
    await connecting;
    expectNotExecuted(failed, /nothing listens at 127\.0\.0\.1:\d+.*ECONNREFUSED/);
    expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
  });

  it('a Pool of pg, a client of postgres, a DynamoDB of the SDK, and Supabase', async () => {
    const port = await deadPort();
    const pool = new Pool({ host: '127.0.0.1', port, user: 'me', password: SECRET });
    const sql = postgres({ host: '127.0.0.1', port, user: 'me', password: SECRET, fetch_types: false });
    const dynamodb = new DynamoDB({
      region: 'eu-west-1',
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: 'key', secretAccessKey: SECRET },
    });
    const supabase = new PostgrestClient(`http://127.0.0.1:${port}`, { headers: { apikey: SECRET } });
    const stores = [
      postgresStore(pool),
      postgresStore(sql),
      dynamodbStore(dynamodb),
      supabaseStore(supabase),
    ];
    for (const store of stores) {
      const failed = await failureOf(store, 0);
      expectNotExecuted(failed, /nothing listens at .* is the server running/);
      expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
    }
    await pool.end();
    await sql.end();
  });

  it('and who waits is told so when the wait is over, after more than one attempt', async () => {
    const store = await openStore(`postgres://me:${SECRET}@127.0.0.1:${await deadPort()}/db`);
    const sinceMs = performance.now();
    const failed = await failureOf(store, '500ms');
    expect(performance.now() - sinceMs).toBeGreaterThanOrEqual(490);
    expectNotExecuted(failed, /nothing listens/);
    expect(failed.claims).toBeGreaterThan(1);
  });
});

describe.runIf(available('redis'))('redis: a wrong password', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ own: true, config: { requirepass: 'right' } });
  });
  afterAll(() => server?.stop());

  it.each(REDIS_CLIENTS.map(({ name }) => name))(
    'fails at once with %s, also for who waits',
    async (name) => {
      const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
      const store = await openRedis('redis', `//:${SECRET}@${server.host}:${server.port}`, clients);
      const failed = await failureOf(store, '1m');
      expectNotExecuted(failed, /refuses this user name and password: check them/);
      expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
    },
  );
});

describe.runIf(available('nats'))('nats: a wrong password', () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await startNats({ login: { user: 'me', password: 'right' } });
  });
  afterAll(() => server?.stop());

  it('fails at once, also for who waits', async () => {
    const failed = await failureOf(
      await openStore(`nats://me:${SECRET}@${server.host}:${server.port}`),
      '1m',
    );
    expectNotExecuted(failed, /refuses this user name and password/);
    expect(failed.claims).toBeLessThanOrEqual(CLAIMS_MAX);
  });
});

describe.runIf(available('postgres'))('postgres:', () => {
  let server: PostgresServer;

  /** The server trusts everybody; this one user has to say a password. */
  beforeAll(async () => {
    server = await startPostgres({ own: true });
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("CREATE ROLE locked LOGIN PASSWORD 'right'");
    const { rows } = await client.query('SHOW hba_file');
    const lines = ['host all locked 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust'];
    const values = lines.map((line) => `('${line}')`).join(', ');
    await client.query(`COPY (SELECT * FROM (VALUES ${values}) AS lines) TO '${rows[0].hba_file}'`);
    await client.query('SELECT pg_reload_conf()');
    await client.end();
  });
  afterAll(() => server?.stop());

  describe.each(POSTGRES_CLIENTS.map(({ name }) => name))('with %s,', (name) => {
    const clients = POSTGRES_CLIENTS.filter((candidate) => candidate.name === name);
    const open = (user: string, database: string): Promise<Store> =>
      openPostgres('postgres', `//${user}@${server.host}:${server.port}/${database}`, clients);

    it('a wrong password fails at once, also for who waits', async () => {
      const open1 = async (): Promise<Failed> => failureOf(await open(`locked:${SECRET}`, 'postgres'), '1m');
      // The server reads its file again a moment after it was told to.
      await expect.poll(async () => (await open1()).message).toMatch(/refuses this user name and password/);
      const failed = await open1();
      expectNotExecuted(failed, /refuses this user name and password: check them .*locked/);
      expect(failed.claims).toBe(1);
    });

    it('a database that does not exist fails at once, also for who waits', async () => {
      const failed = await failureOf(await open('postgres', 'nowhere'), '1m');
      expectNotExecuted(failed, /the database does not exist at .*create it, or name another \(.*"nowhere"/);
      expect(failed.claims).toBe(1);
    });

    it('a database without the schema fails at once, also for who waits', async () => {
      const { error, message, claims } = await failureOf(await open('postgres', 'postgres'), '1m');
      expect(error).toBeInstanceOf(UnsupportedError);
      expect(message).toMatch(/not ready for Holdfast .* Run `holdfast migrate/);
      expect(claims).toBe(1);
    });
  });
});

describe('sqlite:', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-down-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('a file that another process keeps locked is asked again by a try, which then says so', async () => {
    const file = join(folder, 'busy.db');
    const locks = createLocks(await openStore(`sqlite:${file}`));
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    const failed = locks.tryAcquire('job', { ttl: '300ms' });
    await expect(failed).rejects.toMatchObject({ outcome: 'not-executed', key: 'job' });
    await expect(failed).rejects.toThrow(/busy\.db is busy: another process has been writing to it/);
    other.exec('ROLLBACK');
    other.close();
    expect(await locks.tryAcquire('job')).not.toBeNull();
    await locks.close();
  });

  it('a file that is gone fails at once, also for who waits', async () => {
    const file = join(folder, 'gone.db');
    const store = await openStore(`sqlite:${file}`);
    renameSync(file, `${file}.moved`);
    const { error, message, claims } = await failureOf(store, '1m');
    expect(error).toBeInstanceOf(UnsupportedError);
    expect(message).toMatch(/gone\.db was removed or replaced while in use\. Open it again/);
    expect(claims).toBe(1);
  });
});
