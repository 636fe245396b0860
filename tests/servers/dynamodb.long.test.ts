import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { available, type DynamodbOptions, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { atTheEnd, clearScene } from '../scene.js';
import { accepts, expectGone, isAlive, within } from './processes.js';

afterEach(async () => {
  await clearScene();
  vi.unstubAllEnvs();
});

async function start(options: DynamodbOptions = {}): Promise<DynamodbServer> {
  const server = await startDynamodb({ own: true, ...options });
  atTheEnd(() => server.stop());
  return server;
}

function open(endpoint: string, region = 'eu-central-1'): DynamoDB {
  const credentials = { accessKeyId: `key${region.length}`, secretAccessKey: 'secret' };
  const client = new DynamoDB({ endpoint, region, credentials, maxAttempts: 1 });
  atTheEnd(() => client.destroy());
  return client;
}

const createTable = (client: DynamoDB): Promise<unknown> =>
  client.createTable({
    TableName: 'words',
    BillingMode: 'PAY_PER_REQUEST',
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
  });

const put = (client: DynamoDB, key: string): Promise<unknown> =>
  client.putItem({ TableName: 'words', Item: { key: { S: key } } });

const tablesOf = async (client: DynamoDB): Promise<unknown> => (await client.listTables({})).TableNames;

describe.runIf(available('dynamodb', { own: true }))('a private DynamoDB Local', () => {
  it('has one set of tables for all regions and keys, and is gone after stop', async () => {
    const server = await start();
    await createTable(open(server.url));
    expect(await tablesOf(open(server.url, 'us-east-1'))).toEqual(['words']);
    expect(isAlive(server.pid)).toBe(true);
    await server.stop();
    await server.stop();
    await expectGone(server.pid);
    expect(await accepts(server)).toBe(false);
    await expect(server.restart()).rejects.toThrow('was stopped');
  });

  it('restarts on its port as another process, and has forgotten everything', async () => {
    const server = await start();
    const { pid } = server;
    await createTable(open(server.url));
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await tablesOf(open(server.url))).toEqual([]);
  });

  it('remembers what it has on disk through a restart and a kill', async () => {
    const server = await start({ storage: 'disk' });
    const before = open(server.url);
    await createTable(before);
    await put(before, 'one');
    await server.restart();
    await put(open(server.url), 'two');
    await server.kill();
    expect(await accepts(server)).toBe(false);
    await server.restart();
    const { Count } = await open(server.url).scan({ TableName: 'words', ConsistentRead: true });
    expect(Count).toBe(2);
  });

  it('answers nothing while it is paused, everything afterwards, and stops while it is paused', async () => {
    const server = await start();
    const client = open(server.url);
    await tablesOf(client);
    await server.pause();
    const reply = tablesOf(client);
    expect(await within(300, reply)).toBe('no answer');
    await server.resume();
    expect(await reply).toEqual([]);
    await server.pause();
    await server.stop();
    await expectGone(server.pid);
  });

  it('gives back the item on a failed condition, and the time of day with every answer', async () => {
    const server = await start();
    const client = open(server.url);
    await createTable(client);
    await put(client, 'one');
    const again = client.putItem({
      TableName: 'words',
      Item: { key: { S: 'one' } },
      ConditionExpression: 'attribute_not_exists(#key)',
      ExpressionAttributeNames: { '#key': 'key' },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    await expect(again).rejects.toMatchObject({ Item: { key: { S: 'one' } } });
    const answer = await fetch(server.url, { method: 'POST' });
    expect(Math.abs(Date.parse(answer.headers.get('date') ?? '') - Date.now())).toBeLessThan(60_000);
  });
});

describe.runIf(available('dynamodb', { own: true }))('a DynamoDB that the user named', () => {
  it('is used as it is, and not ours to stop', async () => {
    vi.stubEnv('HOLDFAST_TEST_DYNAMODB_URL', 'http://127.0.0.1:8123');
    const server = await startDynamodb();
    expect(server).toMatchObject({ url: 'http://127.0.0.1:8123', host: '127.0.0.1', port: 8123 });
    await server.stop();
    await expect(server.pause()).rejects.toThrow('HOLDFAST_TEST_DYNAMODB_URL');
    expect((await start()).port).not.toBe(8123);
  });

  it('a Java that a variable names has to be there', () => {
    vi.stubEnv('HOLDFAST_JAVA', 'no-such-java');
    expect(() => available('dynamodb', { own: true })).toThrow('HOLDFAST_JAVA names no-such-java');
  });
});
