import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createTable } from 'holdfast/dynamodb';
import { available, startDynamodb, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { expect, it } from 'vitest';
import { until, usePlace } from '../cli/holdfast.js';

const place = usePlace();
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 's3cret' };

it.runIf(available('dynamodb'))(
  'the environment of LockServiceCentral on DynamoDB starts the service on the same table, with the same records',
  { timeout: 120_000 },
  async () => {
    const dynamodb = await startDynamodb();
    const client = new DynamoDB({ endpoint: dynamodb.url, region: 'us-east-1', credentials: CREDENTIALS });
    const table = `central-${process.pid}`;
    await createTable(client, { table, layout: 'lock-service-central' });
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
    const ask = async (...args: string[]): Promise<unknown> => {
      const { status, stdout, stderr } = await place.run(
        [...args, '--namespace', 'billing', '--json'],
        environment,
      );
      expect([args, status, stderr]).toEqual([args, 0, '']);
      return JSON.parse(stdout);
    };
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
  'LOCKER_POSTGRES_SCHEMA=public leaves the table of LockServiceCentral alone, and locks beside it',
  { timeout: 120_000 },
  async () => {
    const postgres = await startPostgres();
    const database = await postgres.createDatabase();
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    await client.query('CREATE TABLE public.locks (lock_id text PRIMARY KEY, owner text, expiry bigint)');
    await client.query(`INSERT INTO public.locks VALUES ('billing:a', 'somebody', 1)`);
    const { hostname, port, pathname, username } = new URL(database);
    const environment = {
      HOLDFAST_STORE: '',
      SPRING_PROFILES_ACTIVE: 'postgres',
      LOCKER_POSTGRES_HOST: hostname,
      LOCKER_POSTGRES_PORT: port,
      LOCKER_POSTGRES_DATABASE: pathname.slice(1),
      LOCKER_POSTGRES_USERNAME: username,
      LOCKER_POSTGRES_SCHEMA: 'public',
    };
    const migrated = await place.run(['migrate'], environment);
    expect([migrated.status, migrated.stdout]).toEqual([
      0,
      expect.stringContaining('created in the schema "holdfast"'),
    ]);
    const run = ['run', 'billing/a', '--', process.execPath, '-e', '0'];
    expect((await place.run(run, environment)).status).toBe(0);
    expect((await client.query('SELECT * FROM public.locks')).rows).toHaveLength(1);
    await client.end();
    await postgres.stop();
  },
);
