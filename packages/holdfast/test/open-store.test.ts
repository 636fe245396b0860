import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadFirst } from '../src/open-store/client-package.js';
import { migrationOf, openStore } from '../src/open-store/index.js';
import { postgresTarget } from '../src/open-store/postgres.js';
import { redisTarget } from '../src/open-store/redis.js';
import { explain } from '../src/open-store/trouble.js';
import { InvalidArgumentError, UnsupportedError } from '../src/protocol/index.js';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-open-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('opens memory, and SQLite files by path, absolute or as a URL', async () => {
  const memory = await openStore('memory:');
  expect(memory.name).toBe('memory');
  for (const url of [
    `sqlite:${folder}/a.db`,
    `sqlite://${folder}/b.db`,
    `SQLite:${folder}/with%20space%3F.db`,
  ]) {
    const store = await openStore(url);
    expect(store.name).toBe('sqlite');
    await store.close();
  }
  for (const name of ['a.db', 'b.db', 'with space?.db'])
    expect(existsSync(join(folder, name)), name).toBe(true);
});

it('makes missing folders', async () => {
  const store = await openStore(`sqlite:${folder}/deep/er/locks.db`);
  await store.close();
  expect(existsSync(join(folder, 'deep/er/locks.db'))).toBe(true);
});

it.each([
  ['', /not the URL of a store: expected memory:, sqlite:PATH, redis:.* or postgres:/],
  ['locks.db', /not the URL of a store/],
  ['/var/lib/locks.db', /not the URL of a store/],
  ['mysql://x', /no store for "mysql:": expected memory:, sqlite:PATH, redis:/],
  ['memory:x', /takes nothing behind it/],
  ['sqlite:', /path is missing/],
  ['sqlite://', /path is missing/],
  ['sqlite:?x=1', /no option "x"/],
  ['sqlite:a.db?mode=ro', /no option "mode"/],
  ['sqlite://host/a.db', /names a host/],
  ['sqlite:~/a.db', /only a shell knows what ~ is/],
  ['sqlite:100%.db', /write it %25/],
  ['redis:localhost', /no redis: URL: expected redis:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/],
  ['redis://h/x', /number of a database/],
  ['redis://h/1/2', /number of a database/],
  ['redis://h:0', /no redis: URL/],
  ['redis://h:65536', /no redis: URL/],
  ['redis://h:port', /no redis: URL/],
  ['redis://h h', /no redis: URL/],
  ['redis://a,b', /takes one host; for a cluster write redis\+cluster:/],
  ['redis://h?prefx=a', /no option "prefx" in a redis: URL\. The options are: prefix\./],
  ['redis://h?prefix=a&prefix=b', /"prefix" is given twice/],
  ['redis://h?prefix=', /"prefix" has no value/],
  ['rediss+cluster://a,b?db=1', /no option "db" in a rediss\+cluster: URL/],
  ['redis+cluster://a:7000,b:7001/1', /has database 0 and no other/],
  ['redis+cluster://a:7000,,b:7001', /no redis\+cluster: URL/],
  ['postgres:db', /no postgres: URL/],
  ['postgresql://a,b/db', /takes one host/],
  ['postgres://h/db?shema=x', /no option "shema" in a postgres: URL\. The options are: schema, sslmode, /],
  ['postgres://h/db?sslmode=prefer', /sslmode is one of disable, require, no-verify, verify-ca, verify-full/],
  ['postgres://h/db?sslrootcert=/ca.pem', /need sslmode/],
  ['postgres://h/db?sslmode=verify-full&sslrootcert=no-such.pem', /sslrootcert names cannot be read/],
  ['postgres://h/db?connect_timeout=soon', /whole seconds/],
  ['postgres://h/db?schema=a%00b', /schema/],
])('refuses %j with words that help', async (url, words) => {
  const refusal = openStore(url);
  await expect(refusal).rejects.toThrow(words);
  await expect(refusal).rejects.toThrow(InvalidArgumentError);
});

it.each([
  'redis//me:hunter2@host',
  'redis:me:hunter2@host',
  'redis://me:hunter2%@host',
  'redis://me:hun/ter2@host',
  'redis://me:hun?ter2=hunter2@host',
  'redis://me:hun#ter2@host',
  'redis://me:123/hunter2@host/0',
  'redis://me:hunter2@host:port',
  'redis://me:hunter2:more@host',
  'postgres://me:123/hunter2@host/db',
  'postgres://me:hunter2@host/db?sslmode=hunter2',
  'mongo://me:hunter2@host',
])('shows nothing of a password, wherever it slipped to: %j', async (url) => {
  const error: unknown = await openStore(url).then(
    async (store) => store.close(),
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(InvalidArgumentError);
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    expect(cause.message).not.toMatch(/hun|ter2/);
  }
});

describe('the parts of a URL', () => {
  it.each([
    ['//', { host: 'localhost', port: 6379 }, 0],
    ['//db', { host: 'db', port: 6379 }, 0],
    ['//db:7000/2', { host: 'db', port: 7000 }, 2],
    ['///2', { host: 'localhost', port: 6379 }, 2],
    ['//[::1]:7000', { host: '::1', port: 7000 }, 0],
  ])('redis:%s', (rest, address, database) => {
    const { target } = redisTarget('redis', rest);
    expect(target).toMatchObject({ addresses: [address], database, tls: false, cluster: false });
    expect(target.username).toBeUndefined();
    expect(target.password).toBeUndefined();
  });

  it('of a cluster name a few of its nodes, and one user for all', () => {
    const { target, prefix } = redisTarget('rediss+cluster', '//me:p%40ss@a:7000,b?prefix=mine:');
    expect(prefix).toBe('mine:');
    expect(target).toEqual({
      cluster: true,
      tls: true,
      addresses: [
        { host: 'a', port: 7000 },
        { host: 'b', port: 6379 },
      ],
      username: 'me',
      password: 'p@ss',
      database: 0,
    });
  });

  it.each([
    ['//', {}],
    ['//db/app', { host: 'db', database: 'app' }],
    [
      '//me:p%40ss@[::1]:5433/my%20app',
      { user: 'me', password: 'p@ss', host: '::1', port: 5433, database: 'my app' },
    ],
    ['///app?host=/run/postgresql', { host: '/run/postgresql', database: 'app' }],
    ['//%2Frun%2Fpostgresql/app', { host: '/run/postgresql', database: 'app' }],
    ['//db/app?connect_timeout=7&application_name=web', { connectMsMax: 7_000, applicationName: 'web' }],
    ['//db/app?sslmode=disable', { tls: false }],
  ])('postgres:%s', async (rest, parts) => {
    expect((await postgresTarget('postgres', rest)).target).toMatchObject(parts);
  });
});

describe('a client package', () => {
  const missing = (name: string) => async (): Promise<never> => {
    throw Object.assign(new Error(`Cannot find package '${name}' imported from here`), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
  };

  it('that is not installed leaves it to the next', async () => {
    const found = await loadFirst('Redis', [
      { name: 'ioredis', load: missing('ioredis') },
      { name: 'redis', load: async () => 'node-redis' },
    ]);
    expect(found).toBe('node-redis');
  });

  it('is missed in one line with the command that installs it', async () => {
    const none = loadFirst('Redis', [
      { name: 'ioredis', load: missing('ioredis') },
      { name: 'redis', load: missing('redis') },
    ]);
    await expect(none).rejects.toThrow(UnsupportedError);
    await expect(none).rejects.toThrow(
      /^A client package for Redis is needed, and none is installed: npm install ioredis \(or redis\)\.$/,
    );
  });

  it('that is installed but broken is not passed over', async () => {
    const broken = loadFirst('Redis', [
      { name: 'ioredis', load: missing('debug') },
      { name: 'redis', load: async () => 'node-redis' },
    ]);
    await expect(broken).rejects.toThrow(/'debug'/);
  });
});

describe('what a client says, in words', () => {
  const coded = (code: string, message = 'as the client says it') =>
    Object.assign(new Error(message), { code });
  const ofNodes = (lastNodeError: Error) =>
    Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError });
  const where = 'db.internal:5432';

  it.each([
    [coded('ECONNREFUSED'), null, /^nothing listens at db\.internal:5432: is the server running/],
    [
      new AggregateError([coded('ECONNREFUSED', 'connect ECONNREFUSED ::1')]),
      null,
      /^nothing listens.*ECONNREFUSED ::1/,
    ],
    [coded('ENOTFOUND'), null, /host name of db\.internal:5432 is not known/],
    [new Error('connect ETIMEDOUT'), null, /does not answer/],
    [new Error('timeout exceeded when trying to connect'), null, /does not answer/],
    [new Error('WRONGPASS invalid username-password pair'), null, /refuses this user name and password/],
    [new Error('NOAUTH Authentication required.'), null, /refuses this user name and password/],
    [coded('28P01'), null, /refuses this user name and password/],
    [new Error('Command timed out'), null, /is there but does not answer/],
    [new Error('Query read timeout'), null, /is there but does not answer/],
    [
      new Error('The client is offline'),
      new Error('it took the connection and is silent'),
      /is there but does not answer/,
    ],
    [
      ofNodes(new Error('Connection is closed.')),
      null,
      /^no node answers at .*refresh slots cache\. Connection/,
    ],
    [ofNodes(new Error('ERR This instance has cluster support disabled')), null, /is no Redis Cluster/],
    [ofNodes(new Error('WRONGPASS no')), null, /refuses this user name and password/],
    [
      new Error("READONLY You can't write against a read only replica."),
      null,
      /is a replica, which takes no locks/,
    ],
    [coded('3D000'), null, /database does not exist/],
    [new Error("NOPERM this user has no permissions to run the 'evalsha' command"), null, /may not do that/],
    [coded('42501'), null, /may not do that/],
    [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), null, /certificate of .* is not trusted/],
    [new Error('The server does not support SSL connections'), null, /does not speak TLS/],
    [
      new Error("Stream isn't writeable and enableOfflineQueue options is false"),
      coded('ECONNREFUSED'),
      /^nothing listens/,
    ],
    [new Error('The client is offline'), new Error('WRONGPASS no'), /refuses this user name/],
    [new Error('something new'), coded('ECONNREFUSED'), /^db\.internal:5432: something new$/],
    ['not even an error', null, /^db\.internal:5432: not even an error$/],
  ])('%s, %s', (error, trouble, words) => {
    const explained = explain(error, trouble, where);
    expect(explained.message).toMatch(words);
    expect(explained.cause).toBe(error);
  });
});

describe('a migration', () => {
  it('is for PostgreSQL alone', async () => {
    await expect(migrationOf('sqlite:a.db')).rejects.toThrow(/nothing to migrate for "sqlite:"/);
    await expect(migrationOf('redis://h')).rejects.toThrow(InvalidArgumentError);
  });

  it('can be printed without a server, for the schema that the URL names', async () => {
    const migration = await migrationOf('postgres://nowhere.invalid/db?schema=my%20locks');
    expect(migration.schema).toBe('my locks');
    expect(migration.sql).toContain('"my locks"');
    expect((await migrationOf('postgresql://nowhere.invalid/db')).schema).toBe('holdfast');
  });
});
