import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { migrationOf, openStore } from '../../src/open-store.js';
import { InvalidArgumentError } from '../../src/protocol/index.js';
import { dynamodbTarget } from '../../src/stores/dynamodb/from-url.js';
import { singleTable } from '../../src/stores/dynamodb/layouts/index.js';
import { natsTarget } from '../../src/stores/nats/from-url.js';
import { cloops } from '../../src/stores/nats/layouts/index.js';
import { postgresTarget } from '../../src/stores/postgres/from-url.js';
import { redisTarget } from '../../src/stores/redis/from-url.js';

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
  ['', /not the URL of a store: expected memory:, sqlite:PATH, redis:.* postgres:.* nats:.* or https:/],
  ['locks.db', /not the URL of a store/],
  ['/var/lib/locks.db', /not the URL of a store/],
  [undefined as never, /is undefined, but has to be a string/],
  ['mongo://x', /no store for "mongo:": expected memory:, sqlite:PATH, redis:/],
  ['memory:x', /is the whole URL/],
  ['sqlite:', /path is missing/],
  ['sqlite://', /path is missing/],
  ['sqlite:?x=1', /no option "x"/],
  ['sqlite:a.db?mode=ro', /no option "mode"/],
  ['sqlite://host/a.db', /names a host/],
  ['sqlite:~/a.db', /only a shell expands ~/],
  ['sqlite:100%.db', /write it %25/],
  ['redis:localhost', /redis: URL is invalid: expected redis:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/],
  ['redis://h/x', /is a database number/],
  ['redis://h/1/2', /is a database number/],
  ['redis://h:0', /redis: URL is invalid/],
  ['redis://h:65536', /redis: URL is invalid/],
  ['redis://h:port', /redis: URL is invalid/],
  ['redis://h h', /redis: URL is invalid/],
  ['redis://a,b', /takes one host; for a cluster write redis\+cluster:/],
  ['redis://h?prefx=a', /no option "prefx" in a redis: URL\. The options are: prefix\./],
  ['redis://h?prefix=a&prefix=b', /"prefix" is given twice/],
  ['redis://h?prefix=', /"prefix" has no value/],
  ['rediss+cluster://a,b?db=1', /no option "db" in a rediss\+cluster: URL/],
  ['redis+cluster://a:7000,b:7001/1', /has database 0 and no other/],
  ['redis+unix://localhost/run/redis.sock', /expected redis\+unix:.* with no host before the path/],
  ['valkey+unix://', /valkey\+unix: URL is invalid/],
  ['redis+unix:///run/redis.sock?database=x', /is a database number/],
  ['redis+unix:///run/redis.sock?db=1', /The options are: prefix, database\./],
  ['valkey://h/x', /is a database number/],
  ['redis+cluster://a:7000,,b:7001', /redis\+cluster: URL is invalid/],
  ['postgres:db', /postgres: URL is invalid/],
  ['postgresql://a,b/db', /takes one host/],
  [
    'postgres://h/db?shema=x',
    /no option "shema" in a postgres: URL\. The options are: schema, layout, table, sslmode, /,
  ],
  ['postgres://h/db?sslmode=prefer', /sslmode is one of disable, require, no-verify, verify-ca, verify-full/],
  ['postgres://h/db?sslrootcert=/ca.pem', /need sslmode/],
  ['postgres://h/db?sslmode=verify-full&sslrootcert=no-such.pem', /sslrootcert names cannot be read/],
  ['postgres://h/db?connect_timeout=soon', /whole seconds/],
  ['postgres://h/db?schema=a%00b', /schema/],
  ['mysql:app', /mysql: URL is invalid: expected mysql:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/],
  ['mysql://a,b/app', /takes one host/],
  ['mariadb://h/app?tabel=x', /no option "tabel" in a mariadb: URL\. The options are: table, sslmode, /],
  ['mysql://h/app?table=my%20locks', /letters, digits, "_" and "\$"/],
  ['mysql://h/app?sslmode=PREFERRED', /sslmode is one of disable/],
  ['mysql://127.0.0.1/app?sslmode=verify-full', /name of a host/],
  ['dynamodb:locks', /dynamodb: URL is invalid: expected dynamodb:\/\/REGION\/TABLE/],
  ['dynamodb://localhost:8000/locks', /is followed by a region.*endpoint=http:/],
  ['dynamodb://db.internal/locks', /is followed by a region.*endpoint=http:/],
  ['dynamodb://a,b/locks', /is followed by a region/],
  ['dynamodb://eu-west-1/x', /3 to 255 letters/],
  ['dynamodb://eu-west-1/my/table', /3 to 255 letters/],
  ['dynamodb://key@eu-west-1/locks', /access key is written with its secret/],
  ['dynamodb://eu-west-1/locks?endpoint=localhost:8000', /endpoint is a URL of its own/],
  ['dynamodb://eu-west-1/locks?endpoint=http://me:no@h', /without user and password/],
  ['dynamodb://eu-west-1/locks?queue=yes', /"queue" is true or false/],
  ['dynamodb://eu-west-1/locks?sort-key=SK', /sort-key and sort-value belong together/],
  ['dynamodb://eu-west-1/locks?layout=mine', /layout/],
  [
    'dynamodb://eu-west-1/locks?table=x',
    /no option "table" in a dynamodb: URL\. The options are: endpoint, /,
  ],
  ['nats:localhost', /nats: URL is invalid: expected nats:\/\/USER:PASSWORD@HOST:PORT,HOST:PORT\/BUCKET/],
  ['nats://h/my.bucket', /bucket/],
  ['nats://h/a/b', /bucket/],
  ['nats://h/b?replicas=0', /"replicas" is a whole number from 1 to 5/],
  ['nats://h/b?replicas=three', /"replicas" is a whole number/],
  ['nats://h/b?layout=mine', /layout/],
  ['nats://h/b?creds=no-such.creds', /creds names cannot be read/],
  ['nats://h/b?tlsca=/ca.pem', /need nats\+tls:/],
  ['nats+tls://h/b?tlsca=no-such.pem', /tlsca names cannot be read/],
  ['nats://me:no@h/b?token=t', /one way to log in/],
  ['nats://h/b?bucket=x', /no option "bucket" in a nats: URL\. The options are: replicas, layout, /],
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
  'mysql://me:123/hunter2@host/db',
  'mysql://me:hunter2@host/db?sslmode=hunter2',
  'dynamodb://me:hun/ter2@eu-west-1/locks',
  'dynamodb://me:hunter2@host:8000/locks',
  'dynamodb://me:hunter2@eu-west-1/locks?endpoint=hunter2',
  'nats://me:123/hunter2@host/b',
  'nats://hunter2@host/b?token=hunter2',
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
    expect(redisTarget('valkeys', '//h').target).toMatchObject({
      tls: true,
      addresses: [{ host: 'h', port: 6379 }],
    });
    expect(redisTarget('valkeys+cluster', '//h').target).toMatchObject({ tls: true, cluster: true });
    expect(redisTarget('valkey', '//h/3').target).toMatchObject({ tls: false, database: 3 });
    expect(redisTarget('redis+unix', '//me:p%40ss@/run/re%20dis.sock?database=2&prefix=mine:')).toMatchObject(
      {
        target: { socket: '/run/re dis.sock', username: 'me', password: 'p@ss', database: 2, tls: false },
        options: { prefix: 'mine:' },
      },
    );
    const { target, options } = redisTarget('rediss+cluster', '//me:p%40ss@a:7000,b?prefix=mine:');
    expect(options).toEqual({ prefix: 'mine:' });
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

describe('the parts of the URL of a service', () => {
  it.each([
    ['//', {}, {}],
    ['//eu-west-1', { region: 'eu-west-1' }, {}],
    ['//us-gov-west-1/my.locks/', { region: 'us-gov-west-1' }, { table: 'my.locks' }],
    ['///locks', {}, { table: 'locks' }],
    [
      '//key:s%2Fcret@eu-west-1/locks?endpoint=http://localhost:8000&queue=true',
      { endpoint: 'http://localhost:8000', credentials: { accessKeyId: 'key', secretAccessKey: 's/cret' } },
      { table: 'locks', queue: true },
    ],
    [
      '//eu-west-1/app?partition-key=PK&sort-key=SK&sort-value=LOCK&ttl-attribute=TTL',
      {},
      { table: 'app', partitionKey: 'PK', sortKey: { name: 'SK', value: 'LOCK' }, ttlAttribute: 'TTL' },
    ],
    ['//eu-west-1/app?layout=single-table', {}, { table: 'app', layout: singleTable }],
  ])('dynamodb:%s', (rest, target, options) => {
    const found = dynamodbTarget(rest);
    expect(found.target).toMatchObject(target);
    expect(found.options).toEqual(options);
  });

  it.each([
    ['//', { servers: ['localhost:4222'] }, {}],
    ['//a,b:4223,[::1]:4224/locks', { servers: ['a:4222', 'b:4223', '[::1]:4224'] }, { bucket: 'locks' }],
    ['//me:p%40ss@h', { user: 'me', password: 'p@ss', token: undefined }, {}],
    ['//s3cret@h', { user: undefined, password: undefined, token: 's3cret' }, {}],
    ['//h?token=s3cret', { token: 's3cret' }, {}],
    [
      '//h/b?replicas=3&layout=cloops&inbox-prefix=_INBOX_me',
      { inboxPrefix: '_INBOX_me' },
      { bucket: 'b', replicas: 3, layout: cloops },
    ],
  ])('nats:%s', async (rest, target, options) => {
    const found = await natsTarget('nats', rest);
    expect(found.target).toMatchObject({ tls: undefined, ...target });
    expect(found.options).toEqual(options);
  });

  it('nats+tls: asks for TLS', async () => {
    expect((await natsTarget('nats+tls', '//h')).target.tls).toEqual({});
  });
});

describe('a migration', () => {
  it('is for stores that have something to be made', async () => {
    await expect(migrationOf('sqlite:a.db')).rejects.toThrow(/nothing to migrate for "sqlite:"/);
    await expect(migrationOf('redis://h')).rejects.toThrow(InvalidArgumentError);
  });

  it('can be printed without a server, for the schema that the URL names', async () => {
    const migration = await migrationOf('postgres://nowhere.invalid/db?schema=my%20locks');
    expect(migration).toMatchObject({ kind: 'schema', name: 'my locks' });
    expect(migration.script).toContain('"my locks"');
    expect((await migrationOf('postgresql://nowhere.invalid/db')).name).toBe('holdfast');
  });

  it('grants to Supabase what is in PostgreSQL, and nothing else', async () => {
    const options = { supabase: true };
    await expect(migrationOf('dynamodb://eu-west-1', options)).rejects.toThrow(/Supabase is PostgreSQL/);
    await expect(migrationOf('nats://h', options)).rejects.toThrow(InvalidArgumentError);
  });

  it('turns on time to live in DynamoDB, and nowhere else', async () => {
    for (const url of ['nats://h', 'postgres://h/db']) {
      await expect(migrationOf(url, { timeToLive: true })).rejects.toThrow(/a setting of DynamoDB/);
    }
  });
});
