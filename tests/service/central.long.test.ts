import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createTable } from 'holdfast/dynamodb';
import { lockServiceCentral } from 'holdfast/dynamodb/layouts';
import { available, startDynamodb, startEtcd, startFirestore, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { expect, it } from 'vitest';
import { until, usePlace } from '../cli/holdfast.js';
import { newCollection, warmClients } from '../firestore/store-scene.js';
import { centralOnEtcd } from '../fleets/central-etcd.js';
import { centralOnFirestore } from '../fleets/central-firestore.js';
import { CentralOnRecords } from '../fleets/foreign-central.js';
import { CENTRAL_TABLE, CentralOnPostgres } from '../fleets/foreign-central-postgres.js';

const place = usePlace();
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 's3cret' };

it.runIf(available('dynamodb'))(
  'the environment of LockServiceCentral on DynamoDB starts the service on the same table, with the same records',
  { timeout: 120_000 },
  async () => {
    const dynamodb = await startDynamodb();
    const client = new DynamoDB({ endpoint: dynamodb.url, region: 'us-east-1', credentials: CREDENTIALS });
    const table = `central-${process.pid}`;
    await createTable(client, { table, layout: lockServiceCentral });
    const environment = {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'dynamodb',
      LOCKER_DYNAMODB_REGION: 'us-east-1',
      LOCKER_DYNAMODB_TABLENAME: table,
      LOCKER_DYNAMODB_ENDPOINT: dynamodb.url,
      LOCKER_DYNAMODB_ACCESSKEYID: CREDENTIALS.accessKeyId,
      LOCKER_DYNAMODB_SECRETACCESSKEY: CREDENTIALS.secretAccessKey,
      AUTHENTICATION_DISABLED: 'true',
    };
    const running = place.start(['serve', '--port', '0'], environment);
    let said = '';
    running.child.stderr?.on('data', (text) => {
      said += text;
    });
    const [, url] = await until(
      () => /holdfast: (http:\S+)/.exec(said),
      () => `the address, in: ${said}`,
    );
    const answer = await fetch(`${url}/v1/billing/lock/invoice-run/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ instanceId: 'one', leaseDuration: 60 }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([200, { success: true, leaseDuration: 60 }]);
    const { Item } = await client.getItem({
      TableName: table,
      Key: { lockId: { S: 'billing:invoice-run' } },
    });
    expect(Item).toMatchObject({ namespace: { S: 'billing' }, lockName: { S: 'invoice-run' } });
    expect(said).not.toContain(CREDENTIALS.secretAccessKey);
    const ask = askIn(environment);
    expect(await ask('migrate')).toMatchObject({ table });
    const holders = [{ owner: 'anonymous' }];
    expect(await ask('ls')).toMatchObject([{ key: 'invoice-run', holders }]);
    expect(await ask('inspect', 'invoice-run')).toMatchObject({ holders });
    expect(await ask('doctor')).toMatchObject({ store: expect.stringContaining(table) });
    expect(await ask('evict', 'invoice-run', '--yes')).toMatchObject({ evicted: 1 });
    expect(await ask('ls')).toEqual([]);
    client.destroy();
    await dynamodb.stop();
  },
);

it.runIf(available('postgres'))(
  'the environment of LockServiceCentral on PostgreSQL starts the service on the same table, with the same rows',
  { timeout: 120_000 },
  async () => {
    const postgres = await startPostgres();
    const database = await postgres.createDatabase();
    const pool = new pg.Pool({ connectionString: database });
    await pool.query(CENTRAL_TABLE);
    const theirs = new CentralOnPostgres(pool, Date.now, 'billing');
    const { hostname, port, pathname, username } = new URL(database);
    const environment = {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'postgres',
      LOCKER_POSTGRES_HOST: hostname,
      LOCKER_POSTGRES_PORT: port,
      LOCKER_POSTGRES_DATABASE: pathname.slice(1),
      LOCKER_POSTGRES_USERNAME: username,
      LOCKER_POSTGRES_SCHEMA: 'public',
      LOCKER_POSTGRES_TABLENAME: 'Locks',
      AUTHENTICATION_DISABLED: 'true',
    };
    const early = await place.run(['serve', '--port', '0'], environment);
    expect([early.status !== 0, early.stderr]).toEqual([true, expect.stringContaining('holdfast migrate')]);
    const ask = askIn(environment);
    expect(await ask('migrate')).toMatchObject({ table: 'public.locks', from: 0, to: 1 });
    expect(await ask('migrate')).toMatchObject({ table: 'public.locks', from: 1, to: 1 });
    const url = await served(environment);
    // Acquired at one, renewed at the other, released at either.
    expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({
      status: 200,
    });
    const lock = theirs.lockOf('invoice-run', 'anonymous', 'one');
    expect(await lock.heartbeat(30_000)).toBe(true);
    expect(await say(url, 'renew', { instanceId: 'one', leaseDuration: 10 })).toMatchObject({
      status: 200,
      leaseDuration: 100,
    });
    expect(await theirs.acquire('invoice-run', 'somebody', 60_000)).toBeNull();
    const holders = [{ owner: 'anonymous' }];
    expect(await ask('ls')).toMatchObject([{ key: 'invoice-run', holders }]);
    expect(await ask('inspect', 'invoice-run')).toMatchObject({ holders });
    expect(await ask('doctor')).toMatchObject({ store: expect.stringContaining('lock-service-central') });
    expect(await lock.release()).toBe(true);
    expect(await theirs.acquire('invoice-run', 'somebody', 60_000)).not.toBeNull();
    expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({
      status: 423,
    });
    expect(await ask('evict', 'invoice-run', '--yes')).toMatchObject({ evicted: 1 });
    expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({
      status: 200,
    });
    await pool.end();
    await postgres.stop();
  },
);

/** Runs a command on the locks of `billing`, and parses what it prints. */
function askIn(environment: NodeJS.ProcessEnv): (...args: string[]) => Promise<unknown> {
  return async (...args) => {
    const isAboutLocks = /^(?:ls|inspect|evict)$/.test(args[0] ?? '');
    const options = isAboutLocks ? ['--namespace', 'billing', '--json'] : ['--json'];
    const { status, stdout, stderr } = await place.run([...args, ...options], environment);
    expect([args, status, stderr]).toEqual([args, 0, '']);
    return JSON.parse(stdout);
  };
}

/** Acquired at one, renewed at the other, released at either; and every command finds the store by the same variables. */
async function expectBothServices(environment: NodeJS.ProcessEnv, theirs: CentralOnRecords): Promise<void> {
  const url = await served(environment);
  const ask = askIn(environment);
  expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({ status: 200 });
  const lock = theirs.lockOf('invoice-run', 'anonymous', 'one');
  expect(await lock.heartbeat(30_000)).toBe(true);
  const renewed = await say(url, 'renew', { instanceId: 'one', leaseDuration: 10 });
  expect(renewed).toMatchObject({ status: 200, leaseDuration: 100 });
  expect(await theirs.acquire('invoice-run', 'somebody', 60_000)).toBeNull();
  const holders = [{ owner: 'anonymous' }];
  expect(await ask('ls')).toMatchObject([{ key: 'invoice-run', holders }]);
  expect(await ask('inspect', 'invoice-run')).toMatchObject({ holders });
  expect(await ask('doctor')).toMatchObject({ store: expect.stringContaining('lock-service-central') });
  expect(await lock.release()).toBe(true);
  expect(await theirs.acquire('invoice-run', 'somebody', 60_000)).not.toBeNull();
  expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({ status: 423 });
  expect(await ask('evict', 'invoice-run', '--yes')).toMatchObject({ evicted: 1 });
  expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({ status: 200 });
}

it.runIf(available('etcd'))(
  'the environment of LockServiceCentral on etcd starts the service on the same keys, with the same values',
  { timeout: 120_000 },
  async () => {
    const etcd = await startEtcd();
    const prefix = `central-${process.pid}-`;
    const environment = {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'etcd',
      LOCKER_ETCD_ENDPOINTS: etcd.url,
      LOCKER_ETCD_KEYPREFIX: prefix,
      AUTHENTICATION_DISABLED: 'true',
    };
    const theirs = new CentralOnRecords(centralOnEtcd(etcd.url, prefix), Date.now, 'billing');
    await expectBothServices(environment, theirs);
    await etcd.stop();
  },
);

it.runIf(available('firestore'))(
  'the environment of LockServiceCentral on Firestore starts the service on the same documents',
  { timeout: 120_000 },
  async () => {
    const firestore = await startFirestore();
    const [client] = await warmClients(firestore, 1);
    if (!client) throw new Error('No client.');
    const collection = newCollection();
    const environment = {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'firestore',
      GOOGLE_CLOUD_PROJECT: 'holdfast',
      LOCKER_FIRESTORE_COLLECTION: collection,
      FIRESTORE_EMULATOR_HOST: `${firestore.host}:${firestore.port}`,
      AUTHENTICATION_DISABLED: 'true',
    };
    const theirs = new CentralOnRecords(centralOnFirestore(client, collection), Date.now, 'billing');
    await expectBothServices(environment, theirs);
    await client.terminate();
    await firestore.stop();
  },
);

it('the environment of LockServiceCentral in memory starts the service', { timeout: 120_000 }, async () => {
  const url = await served({
    HOLDFAST_STORE: '',
    SPRING_PROFILES_ACTIVE: 'memory',
    AUTHENTICATION_DISABLED: 'true',
  });
  expect(await say(url, 'acquire', { instanceId: 'one', leaseDuration: 60 })).toMatchObject({ status: 200 });
  expect(await say(url, 'acquire', { instanceId: 'two', leaseDuration: 60 })).toMatchObject({ status: 423 });
  expect(await say(url, 'release', { instanceId: 'one' })).toMatchObject({ status: 200 });
});

/** The address of a service that is started with this environment. */
async function served(environment: NodeJS.ProcessEnv): Promise<string> {
  const running = place.start(['serve', '--port', '0'], environment);
  let said = '';
  running.child.stderr?.on('data', (text) => {
    said += text;
  });
  const [, url = ''] = await until(
    () => /holdfast: (http:\S+)/.exec(said),
    () => `the address, in: ${said}`,
  );
  return url;
}

async function say(url: string, verb: string, body: object): Promise<unknown> {
  const answer = await fetch(`${url}/v1/billing/lock/invoice-run/${verb}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, ...((await answer.json()) as object) };
}
