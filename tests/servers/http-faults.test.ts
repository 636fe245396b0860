import { DynamoDB, type PutItemCommandInput } from '@aws-sdk/client-dynamodb';
import {
  available,
  type DynamodbServer,
  type HttpFaults,
  startDynamodb,
  startHttpFaults,
} from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { within } from './processes.js';

const TABLE = 'words';

describe.runIf(available('dynamodb'))('an HTTP proxy in front of DynamoDB', () => {
  let server: DynamodbServer;
  let direct: DynamoDB;
  let faults: HttpFaults;
  let client: DynamoDB;
  let number = 0;
  let key: string;

  const open = (endpoint: string, maxAttempts = 1): DynamoDB =>
    new DynamoDB({
      endpoint,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
      maxAttempts,
    });
  const insertion = (): PutItemCommandInput => ({
    TableName: TABLE,
    Item: { key: { S: key } },
    ConditionExpression: 'attribute_not_exists(#key)',
    ExpressionAttributeNames: { '#key': 'key' },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const isThere = async (): Promise<boolean> => {
    const found = await direct.getItem({ TableName: TABLE, Key: { key: { S: key } }, ConsistentRead: true });
    return found.Item !== undefined;
  };

  beforeAll(async () => {
    server = await startDynamodb();
    direct = open(server.url);
    await direct.createTable({
      TableName: TABLE,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    });
  });

  beforeEach(async () => {
    number += 1;
    key = `key ${number}`;
    faults = await startHttpFaults(server);
    client = open(faults.url);
  });

  afterEach(async () => {
    client.destroy();
    await faults.stop();
  });

  afterAll(async () => {
    direct?.destroy();
    await server?.stop();
  });

  it('passes requests and replies, and counts them by operation', async () => {
    await client.putItem(insertion());
    await expect(client.putItem(insertion())).rejects.toMatchObject({
      name: 'ConditionalCheckFailedException',
      Item: { key: { S: key } },
    });
    await client.listTables({});
    expect([faults.count('PutItem'), faults.count('GetItem'), faults.count()]).toEqual([2, 0, 3]);
    expect(JSON.parse(faults.calls[0]?.body ?? '')).toMatchObject({ Item: { key: { S: key } } });
  });

  it('throttles the next ones of an operation, without the table hearing of them', async () => {
    faults.throttle({ times: 2, operation: 'PutItem' });
    await client.listTables({});
    const throttled = { name: 'ProvisionedThroughputExceededException', $metadata: { httpStatusCode: 400 } };
    await expect(client.putItem(insertion())).rejects.toMatchObject(throttled);
    await expect(client.putItem(insertion())).rejects.toMatchObject(throttled);
    expect(await isThere()).toBe(false);
    await client.putItem(insertion());
    expect(await isThere()).toBe(true);
  });

  it('fails with 500 or any other error of the service, until it passes again', async () => {
    faults.fail();
    await expect(client.putItem(insertion())).rejects.toMatchObject({
      name: 'InternalServerError',
      $metadata: { httpStatusCode: 500 },
    });
    faults.pass();
    faults.refuse({ status: 400, type: 'ResourceNotFoundException', message: 'gone' }, { times: 1 });
    await expect(client.putItem(insertion())).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
      message: 'gone',
    });
    await client.putItem(insertion());
  });

  it('loses a request: nothing was written', async () => {
    faults.loseRequests({ times: 1 });
    await expect(client.putItem(insertion())).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await isThere()).toBe(false);
    expect(faults.lost).toBe(0);
  });

  it('loses a reply: it was written all the same', async () => {
    faults.loseReplies({ times: 1 });
    await expect(client.putItem(insertion())).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await isThere()).toBe(true);
    expect(faults.lost).toBe(1);
  });

  it('loses a reply to a client that asks again by itself, which then meets its own write', async () => {
    const stubborn = open(faults.url, 3);
    faults.loseReplies({ times: 1 });
    const again = stubborn.putItem(insertion());
    await expect(again).rejects.toMatchObject({ name: 'ConditionalCheckFailedException' });
    expect(faults.count('PutItem')).toBe(2);
    stubborn.destroy();
  });

  it('holds a request that arrives after its client gave up', async () => {
    const held = faults.holdRequest({ operation: 'PutItem' });
    const givenUp = new AbortController();
    const reply = client.putItem(insertion(), { abortSignal: givenUp.signal });
    expect(JSON.parse((await held.arrived).body)).toMatchObject({ TableName: TABLE });
    givenUp.abort();
    await expect(reply).rejects.toMatchObject({ name: 'AbortError' });
    expect(await isThere()).toBe(false);
    held.release();
    await vi.waitFor(async () => expect(await isThere()).toBe(true), { timeout: 60_000 });
  });

  it('holds a reply while what it tells of has happened', async () => {
    const held = faults.holdReply();
    const reply = client.putItem(insertion());
    await held.arrived;
    expect(await isThere()).toBe(true);
    expect(await within(100, reply)).toBe('no answer');
    faults.pass();
    expect(await reply).toBeTypeOf('object');
  });

  it('delays requests or replies', async () => {
    faults.delayRequests(300, { times: 1 });
    const first = client.putItem(insertion());
    await expect.poll(() => faults.count()).toBe(1);
    expect(await isThere()).toBe(false);
    await first;
    faults.delayReplies(300, { times: 1 });
    const beginMs = performance.now();
    await client.listTables({});
    expect(performance.now() - beginMs).toBeGreaterThanOrEqual(290);
  });

  it('moves or leaves out the time of day', async () => {
    const dateOf = async (): Promise<string | null> =>
      (await fetch(faults.url, { method: 'POST' })).headers.get('date');
    faults.rewriteDate((date) => new Date(date.getTime() + 3_600_000).toUTCString());
    const aheadMs = Date.parse((await dateOf()) ?? '') - Date.now();
    expect(Math.abs(aheadMs - 3_600_000)).toBeLessThan(60_000);
    faults.rewriteDate(() => undefined);
    expect(await dateOf()).toBeNull();
    faults.fail();
    expect(await dateOf()).toBeNull();
  });

  it('leaves out the items that failed conditions give back, and nothing else', async () => {
    await client.putItem(insertion());
    const transact = (): Promise<unknown> =>
      client.transactWriteItems({
        TransactItems: [{ Put: { ...insertion(), TableName: TABLE, Item: { key: { S: key } } } }],
      });
    const item = { Item: { key: { S: key } } };
    await expect(client.putItem(insertion())).rejects.toMatchObject(item);
    await expect(transact()).rejects.toMatchObject({ CancellationReasons: [item] });
    faults.stripItems();
    const name = 'ConditionalCheckFailedException';
    await expect(client.putItem(insertion())).rejects.toMatchObject({ name, Item: undefined });
    await expect(transact()).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      CancellationReasons: [expect.not.objectContaining({ Item: expect.anything() })],
    });
    const found = await client.getItem({ TableName: TABLE, Key: { key: { S: key } } });
    expect(found.Item).toEqual({ key: { S: key } });
  });

  it('a target that is gone looks like a connection that broke', async () => {
    await faults.stop();
    const lonely = await startHttpFaults({ host: '127.0.0.1', port: faults.port });
    const lost = open(lonely.url);
    await expect(lost.listTables({})).rejects.toMatchObject({ code: 'ECONNRESET' });
    lost.destroy();
    await lonely.stop();
  });

  it('what it holds when it is stopped never arrives', async () => {
    const held = faults.holdRequest();
    const reply = client.putItem(insertion()).catch((error: unknown) => error);
    await held.arrived;
    await faults.stop();
    expect(await reply).toBeInstanceOf(Error);
    expect(await isThere()).toBe(false);
  });
});
