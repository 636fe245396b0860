import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { InvalidArgumentError, UnsupportedError } from 'holdfast';
import { createTable, type DynamodbStoreOptions, dynamodbStore } from 'holdfast/dynamodb';
import { singleTable } from 'holdfast/dynamodb/layouts';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, clientOf, releaseOf, say, tableOn } from './store-scene.js';

const DAY_SECONDS = 24 * 60 * 60;

describe.runIf(available('dynamodb'))('the table', () => {
  let server: DynamodbServer;
  let client: DynamoDB;

  beforeAll(async () => {
    server = await startDynamodb();
    client = clientOf(server.url);
  });

  afterAll(async () => {
    client?.destroy();
    await server?.stop();
  });

  const plain = (table: string, keys: readonly string[], type: 'S' | 'N' = 'S') =>
    client.createTable({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: keys.map((AttributeName) => ({ AttributeName, AttributeType: type })),
      KeySchema: keys.map((AttributeName, at) => ({ AttributeName, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
    });

  it('is made on demand with its time to live on, by many at once, and again without a change', async () => {
    const table = 'made-once';
    const made = await Promise.all(Array.from({ length: 4 }, () => createTable(client, { table })));
    expect(made.filter(({ created }) => created)).toHaveLength(1);
    expect(await createTable(client, { table })).toEqual({
      table,
      created: false,
      timeToLive: 'ttl',
      turnedOn: false,
    });
    const { Table: found } = await client.describeTable({ TableName: table });
    expect(found?.BillingModeSummary?.BillingMode).toBe('PAY_PER_REQUEST');
    const { TimeToLiveDescription: ttl } = await client.describeTimeToLive({ TableName: table });
    expect(ttl).toMatchObject({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' });
  });

  const timeToLiveOf = async (table: string) =>
    (await client.describeTimeToLive({ TableName: table })).TimeToLiveDescription;

  it('that an application has is only looked at: nothing is changed unless it is asked for by name', async () => {
    const table = 'application';
    await plain(table, ['PK', 'SK']);
    // Were time to live turned on, DynamoDB would delete it.
    const order = { PK: { S: 'order:1' }, SK: { S: 'ORDER' }, TTL: { N: '1' } };
    await client.putItem({ TableName: table, Item: order });
    const place = { table, layout: singleTable } as const;
    expect(await createTable(client, place)).toEqual({
      table,
      created: false,
      timeToLive: null,
      turnedOn: false,
    });
    expect(await timeToLiveOf(table)).toEqual({ TimeToLiveStatus: 'DISABLED' });
    expect((await client.scan({ TableName: table })).Items).toEqual([order]);
    const asked = await createTable(client, { ...place, timeToLive: true });
    expect(asked).toEqual({ table, created: false, timeToLive: 'TTL', turnedOn: true });
    expect(await timeToLiveOf(table)).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'TTL' });
    expect(await createTable(client, { ...place, timeToLive: true })).toMatchObject({ turnedOn: false });
  });

  it('with the names of Holdfast is only looked at as well', async () => {
    await plain('there-already', ['key']);
    const options = { table: 'there-already' };
    expect(await createTable(client, options)).toMatchObject({ created: false, timeToLive: null });
    expect(await timeToLiveOf('there-already')).toEqual({ TimeToLiveStatus: 'DISABLED' });
    const wrong = createTable(client, { ...options, timeToLive: 'yes' as unknown as boolean });
    await expect(wrong).rejects.toThrow(InvalidArgumentError);
    expect(() => dynamodbStore(client, { ...options, timeToLive: true } as object)).toThrow(/no option/);
  });

  it.each<[string, readonly string[], 'S' | 'N', DynamodbStoreOptions, RegExp]>([
    ['another partition key', ['PK'], 'S', {}, /partition key is "PK", not "key"/],
    ['a sort key too many', ['key', 'SK'], 'S', {}, /sort key is "SK", not none/],
    ['no sort key', ['key'], 'S', { sortKey: { name: 'SK', value: 'LOCK' } }, /sort key is none, not "SK"/],
    ['a key that is a number', ['key'], 'N', {}, /"key" is of type N, not S/],
  ])('with %s is refused, in words', async (what, keys, type, options, words) => {
    const table = what.replaceAll(' ', '-');
    await plain(table, keys, type);
    await expect(createTable(client, { ...options, table })).rejects.toThrow(words);
    const [refused] = dynamodbStore(client, { ...options, table }).apply([claimOf('any', 'anna')]);
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/another primary key/);
  });

  it.each([
    ['without a layout', ['key'], {}, /uses "expires".*Name it with ttlAttribute: "expires"/s],
    ['with a layout', ['PK', 'SK'], { layout: singleTable }, /always writes "TTL".*leave timeToLive out/s],
  ] as const)(
    'whose time to live goes by another attribute is told so, with what can be done %s',
    async (what, keys, options, words) => {
      const table = `other-${what.replaceAll(' ', '-')}`;
      await plain(table, keys);
      const TimeToLiveSpecification = { Enabled: true, AttributeName: 'expires' };
      await client.updateTimeToLive({ TableName: table, TimeToLiveSpecification });
      const found = { table, created: false, timeToLive: 'expires', turnedOn: false };
      expect(await createTable(client, { ...options, table })).toEqual(found);
      const refused = createTable(client, { ...options, table, timeToLive: true });
      await expect(refused).rejects.toThrow(UnsupportedError);
      await expect(refused).rejects.toThrow(words);
      if ('layout' in options) await expect(refused).rejects.not.toThrow(/ttlAttribute/);
      else
        expect(await createTable(client, { table, ttlAttribute: 'expires', timeToLive: true })).toEqual(
          found,
        );
      expect(await timeToLiveOf(table)).toMatchObject({ AttributeName: 'expires' });
      const { findings } = await dynamodbStore(client, { ...options, table }).probe();
      const [ttl] = findings.filter(({ text }) => text.includes('"expires"'));
      expect(ttl?.level).toBe('warning');
      expect(ttl?.text.includes('ttlAttribute')).toBe(!('layout' in options));
    },
  );

  it('F23: reserved words are as good as any other name, and the time to live is a number of seconds', async () => {
    const options = { partitionKey: 'Owner', sortKey: { name: 'Key', value: 'TTL' }, ttlAttribute: 'TTL' };
    const table = await tableOn(client, options);
    const store = dynamodbStore(client, { ...options, table });
    const claim = claimOf('reserved', 'anna', { metadata: '{"a":1}' });
    const granted = await say(store, claim);
    expect(granted.kind).toBe('granted');
    await say(store, releaseOf(claim));
    expect((await say(store, claimOf('reserved', 'bert'))).kind).toBe('granted');
    const { Items: items = [] } = await client.scan({ TableName: table });
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ Owner: { S: 'reserved' }, Key: { S: 'TTL' } });
    const ttl = Number(items[0]?.TTL?.N);
    const days = (ttl - granted.now / 1_000) / DAY_SECONDS;
    expect(days).toBeGreaterThanOrEqual(2);
    expect(days).toBeLessThan(2.01);
    const keys = [];
    for await (const { key } of store.list({ prefix: '' })) keys.push(key);
    expect(keys).toEqual(['reserved']);
  });

  it('may be shared with other things: locks are told apart by their sort key', async () => {
    const options = { partitionKey: 'PK', sortKey: { name: 'SK', value: 'LOCK' }, ttlAttribute: 'TTL' };
    const table = await tableOn(client, options);
    const user = { PK: { S: 'user:1' }, SK: { S: 'PROFILE' }, holders: { S: 'none of ours' } };
    await client.putItem({ TableName: table, Item: user });
    const store = dynamodbStore(client, { ...options, table });
    expect((await say(store, claimOf('user:1', 'anna'))).kind).toBe('granted');
    const keys = [];
    for await (const { key } of store.list({ prefix: 'user' })) keys.push(key);
    expect(keys).toEqual(['user:1']);
    const Key = { PK: user.PK, SK: user.SK };
    expect((await client.getItem({ TableName: table, Key })).Item).toEqual(user);
  });

  it('may hold things that are no locks: they are left as they are', async () => {
    const table = await tableOn(client);
    const Item = { key: { S: 'mine' }, balance: { N: '7' } };
    await client.putItem({ TableName: table, Item });
    const store = dynamodbStore(client, { table });
    await expect(store.apply([claimOf('mine', 'anna')])[0]).rejects.toThrow(/not a lock of Holdfast/);
    const keys = [];
    for await (const { key } of store.list({ prefix: '' })) keys.push(key);
    expect(keys).toEqual([]);
    expect((await client.getItem({ TableName: table, Key: { key: { S: 'mine' } } })).Item).toEqual(Item);
  });

  it('a record that is too large for an item is refused, and the lock goes on', async () => {
    const table = await tableOn(client);
    const store = dynamodbStore(client, { table });
    const claims = Array.from({ length: 5 }, (_, index) =>
      claimOf('large', `process-${index}`, { capacity: 5, metadata: JSON.stringify('x'.repeat(95_000)) }),
    );
    for (const claim of claims.slice(0, 4)) expect((await say(store, claim)).kind).toBe('granted');
    const [refused] = store.apply(claims.slice(4));
    await expect(refused).rejects.toThrow(/400 KB/);
    for (const claim of claims.slice(0, 4)) {
      expect(await say(store, releaseOf(claim))).toMatchObject({ held: true });
    }
  });

  it('a list goes on past one page, in the order of the keys', async () => {
    const table = await tableOn(client);
    const store = dynamodbStore(client, { table });
    const metadata = JSON.stringify('x'.repeat(100_000));
    const names = Array.from({ length: 25 }, (_, index) => `page-${String(index).padStart(2, '0')}`);
    await Promise.all(store.apply(names.map((name) => claimOf(name, 'anna', { metadata }))));
    const keys = [];
    for await (const { key } of store.list({ prefix: 'page-' })) keys.push(key);
    expect(keys).toEqual(names);
  });

  it('probe says what this table promises', async () => {
    const table = await tableOn(client);
    const good = await dynamodbStore(client, { table }).probe();
    const words = good.findings.map(({ text }) => text).join('\n');
    expect(good.server).toBe('DynamoDB Local');
    expect(Math.abs(good.now - Date.now())).toBeLessThan(5_000);
    expect(words).toMatch(/On-demand billing/);
    expect(words).toMatch(/deleted, by the attribute "ttl"/);
    await plain('bare', ['key']);
    const bare = await dynamodbStore(client, { table: 'bare' }).probe();
    expect(bare.findings).toContainEqual({
      level: 'warning',
      text: expect.stringMatching(/Time to live is off/),
    });
    const other = await dynamodbStore(client, { table, ttlAttribute: 'expires' }).probe();
    expect(other.findings).toContainEqual({ level: 'warning', text: expect.stringMatching(/stay for ever/) });
  });

  it('probe warns of a global table, unless its regions agree on every write', async () => {
    const table = await tableOn(client);
    const { Table } = await client.describeTable({ TableName: table });
    const probed = async (more: object) => {
      const describeTable = async () => ({
        Table: { ...Table, Replicas: [{ RegionName: 'us-east-1' }], ...more },
      });
      const global = Object.create(client, { describeTable: { value: describeTable } }) as DynamoDB;
      return (await dynamodbStore(global, { table }).probe()).findings;
    };
    const text = expect.stringMatching(/two regions may both grant/);
    expect(await probed({})).toContainEqual({ level: 'warning', text });
    expect(await probed({ MultiRegionConsistency: 'STRONG' })).not.toContainEqual({ level: 'warning', text });
  });

  it('wrong arguments are refused before anything is sent', () => {
    const wrong: readonly unknown[] = [
      { table: 'a b' },
      { tabel: 'locks' },
      { partitionKey: '' },
      { partitionKey: 'token' },
      { partitionKey: 'ttl' },
      { sortKey: { name: 'SK', value: '' } },
      { queue: 'yes' },
      { layout: 'unheard-of' },
      { layout: singleTable, partitionKey: 'PK' },
      { layout: singleTable, queue: true },
    ];
    for (const options of wrong) {
      expect(() => dynamodbStore(client, options as DynamodbStoreOptions), JSON.stringify(options)).toThrow(
        InvalidArgumentError,
      );
    }
    for (const other of [{}, { send: () => undefined }, { middlewareStack: { add: () => undefined } }]) {
      expect(() => dynamodbStore(other as never)).toThrow(/a DynamoDB or DynamoDBClient of/);
    }
  });
});
