import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { migrationOf, openStore } from '../../packages/holdfast/src/open-store.js';
import { StoreError, UnsupportedError } from '../../packages/holdfast/src/protocol/index.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';
import { importError } from '../../packages/holdfast/src/stores/clients/opened-client.js';
import { openStore as openDynamodb } from '../../packages/holdfast/src/stores/dynamodb/from-url.js';

const opened: Store[] = [];

async function open(url: string): Promise<Store> {
  const store = await openStore(url);
  opened.push(store);
  return store;
}

async function failureOf(store: Store): Promise<string> {
  return store.read('job').then(
    () => 'no failure',
    (error: Error) => error.message,
  );
}

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const store of opened.splice(0)) await store.close();
});

describe.runIf(available('dynamodb', { own: true }))('dynamodb:', () => {
  let server: DynamodbServer;
  let admin: DynamoDB;
  let names = 0;

  beforeAll(async () => {
    server = await startDynamodb({ own: true, storage: 'disk' });
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    admin = new DynamoDB({ endpoint: server.url, region: 'eu-west-1', credentials });
  });
  afterAll(async () => {
    admin?.destroy();
    await server?.stop();
  });

  /** A name that no table has. */
  function fresh(options = ''): { readonly url: string; readonly table: string } {
    names += 1;
    const table = `locks.${names}`;
    return { table, url: `dynamodb://test:test@eu-west-1/${table}?endpoint=${server.url}${options}` };
  }

  it('makes the table that the URL names, once, and keeps locks there', async () => {
    const { url, table } = fresh();
    const migration = await migrationOf(url);
    expect(migration).toMatchObject({ kind: 'table', name: table });
    expect(await migration.apply()).toEqual({ from: 0, to: 1, notes: [] });
    expect(await migration.apply()).toEqual({ from: 1, to: 1, notes: [] });
    const locks = createLocks(await open(url));
    await locks.withLock('job', async (lease) => {
      expect(lease.held).toBe(true);
      const { Items = [] } = await admin.scan({ TableName: table });
      expect(Items.map(({ key }) => key?.S)).toEqual(['default/job']);
    });
    await locks.close({ drain: 0 });
  });

  it('uses the names of attributes that the URL gives, and the table of a single-table design', async () => {
    const { url, table } = fresh(
      '&partition-key=PK&sort-key=SK&sort-value=LOCK&ttl-attribute=Expires&queue=true',
    );
    await (await migrationOf(url)).apply();
    const store = await open(url);
    expect(store.traits.queue).toBe(true);
    const locks = createLocks(store);
    await locks.withLock('job', async () => {
      const { Items = [] } = await admin.scan({ TableName: table });
      expect(Items).toMatchObject([
        { PK: { S: 'default/job' }, SK: { S: 'LOCK' }, Expires: { N: expect.stringMatching(/^\d+$/) } },
      ]);
    });
    await locks.close({ drain: 0 });
  });

  it('has no line of waiters unless the URL asks for it', async () => {
    expect((await open(fresh().url)).traits.queue).toBe(false);
    expect((await open(fresh('&queue=false').url)).traits.queue).toBe(false);
  });

  it('has the locks of instances where the URL names the layout of LockServiceCentral', async () => {
    const { url, table } = fresh('&layout=lock-service-central');
    await (await migrationOf(url)).apply();
    const { instances } = await open(url);
    const anna = { owner: 'anna', instanceId: 'one' };
    expect(await instances?.acquire('shop/nightly', anna, 60, 'first')).toMatchObject({
      ...anna,
      leaseDuration: 60,
    });
    expect(await instances?.acquire('shop/nightly', { ...anna, instanceId: 'two' }, 60, 'second')).toBeNull();
    expect((await admin.scan({ TableName: table })).Count).toBe(1);
  });

  it('prints its table as a template that makes the same one', async () => {
    const { url, table } = fresh('&sort-key=SK&sort-value=LOCK');
    const template = JSON.parse((await migrationOf(url)).script);
    const { TimeToLiveSpecification, ...input } = template.Resources.Locks.Properties;
    await admin.createTable(input);
    await admin.updateTimeToLive({ TableName: table, TimeToLiveSpecification });
    expect(await (await migrationOf(url)).apply()).toEqual({ from: 1, to: 1, notes: [] });
  });

  it('says that the table is missing, and how to make it', async () => {
    const reading = (await open(fresh().url)).read('job');
    await expect(reading).rejects.toThrow(UnsupportedError);
    await expect(reading).rejects.toThrow(/no table "locks\.\d+".*holdfast migrate/s);
  });

  it('leaves the credentials to the environment where the URL has none, and says what to set', async () => {
    const { table } = fresh();
    const url = `dynamodb://eu-west-1/${table}?endpoint=${server.url}`;
    // Nothing of the machine's own, and no questions to a metadata service.
    vi.stubEnv('AWS_CONFIG_FILE', '/nowhere');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nowhere');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_PROFILE', undefined);
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
    expect(await failureOf(await open(url))).toMatch(
      /^no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/,
    );
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
    await (await migrationOf(url)).apply();
    expect(await failureOf(await open(url))).toBe('no failure');
  });

  it('takes the region from the environment where the URL has none, and says what to set', async () => {
    vi.stubEnv('AWS_CONFIG_FILE', '/nowhere');
    vi.stubEnv('AWS_REGION', undefined);
    const { url } = fresh();
    const anywhere = url.replace('eu-west-1', '');
    expect(await failureOf(await open(anywhere))).toMatch(/^no AWS region is known: name it in the URL/);
    vi.stubEnv('AWS_REGION', 'us-east-2');
    await (await migrationOf(anywhere)).apply();
    expect(await failureOf(await open(anywhere))).toBe('no failure');
  });

  it('goes on by itself when the server was restarted, and says meanwhile that nobody is there', async () => {
    const { url } = fresh();
    await (await migrationOf(url)).apply();
    const store = await open(url);
    const locks = createLocks(store);
    await locks.withLock('before', () => undefined);
    await server.kill();
    await expect.poll(() => failureOf(store)).toMatch(/^nothing listens at 127\.0\.0\.1:\d+: is the server/);
    const failed: unknown = await locks.acquire('job', { wait: 300 }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(StoreError);
    expect((failed as StoreError).cause).toMatchObject({
      message: expect.stringMatching(/^nothing listens/),
    });
    await server.restart();
    await using lease = await locks.acquire('after', { wait: 15_000 });
    expect(lease.held).toBe(true);
    await locks.close({ drain: 0 });
  });

  it('opens though nobody is there', async () => {
    const store = await open('dynamodb://test:test@eu-west-1/locks?endpoint=http://127.0.0.1:1');
    expect(await failureOf(store)).toMatch(/^nothing listens at 127\.0\.0\.1:1/);
    const applying = (
      await migrationOf('dynamodb://test:test@eu-west-1/locks?endpoint=http://127.0.0.1:1')
    ).apply();
    await expect(applying).rejects.toThrow(/^the table was not made: nothing listens at 127\.0\.0\.1:1/);
    await expect(applying).rejects.toThrow(StoreError);
  });
});

describe('dynamodb: on something else', () => {
  it('does not wait for ever for a server that hangs, and says so', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    try {
      const store = await open(`dynamodb://test:test@eu-west-1/locks?endpoint=http://127.0.0.1:${port}`);
      expect(await failureOf(store)).toMatch(/is there but does not answer/);
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  it('says that there is no TLS', async () => {
    const plain = createServer((_, answer) => answer.end());
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = plain.address() as AddressInfo;
    try {
      const store = await open(`dynamodb://test:test@eu-west-1/locks?endpoint=https://127.0.0.1:${port}`);
      expect(await failureOf(store)).toMatch(/does not speak TLS/);
    } finally {
      plain.closeAllConnections();
      plain.close();
    }
  });

  it('misses the package of the client in one line', async () => {
    const load = async (): Promise<never> => {
      const error = new Error("Cannot find package '@aws-sdk/client-dynamodb' imported from here");
      throw importError('@aws-sdk/client-dynamodb', Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' }));
    };
    const opening = openDynamodb('dynamodb', '//eu-west-1', [{ name: '@aws-sdk/client-dynamodb', load }]);
    await expect(opening).rejects.toThrow(
      /^A client package for DynamoDB is needed, and none is installed: npm install @aws-sdk\/client-dynamodb\.$/,
    );
  });
});
