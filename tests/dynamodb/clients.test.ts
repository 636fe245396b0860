/** Clients that send commands: the store and the table are used through the commands of the user's SDK. */
import { DynamoDB, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocument, DynamoDBDocumentClient, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { createLocks, InvalidArgumentError, LeaseLostError, UnsupportedError } from 'holdfast';
import {
  createTable,
  type DynamodbClient,
  type DynamodbCommandClient,
  dynamodbStore,
} from 'holdfast/dynamodb';
import { dynamodbGuard } from 'holdfast/fences';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { takeover } from '../guards/takeover.js';
import { claimOf, releaseOf, renewOf, say } from '../store-talk.js';

describe.runIf(available('dynamodb'))('clients of DynamoDB', () => {
  let server: DynamodbServer;
  let plain: DynamoDBClient;
  let tables = 0;

  const settings = () => ({
    endpoint: server.url,
    region: 'eu-west-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  beforeAll(async () => {
    server = await startDynamodb();
    plain = new DynamoDBClient(settings());
  });
  afterAll(async () => {
    plain?.destroy();
    await server?.stop();
  });

  const KINDS: Readonly<Record<string, () => DynamodbCommandClient>> = {
    DynamoDBClient: () => plain,
    DynamoDBDocumentClient: () => DynamoDBDocumentClient.from(plain),
    'DynamoDBDocumentClient that marshalls in its own way': () =>
      DynamoDBDocumentClient.from(plain, {
        marshallOptions: { convertEmptyValues: true },
        unmarshallOptions: { wrapNumbers: true },
      }),
    DynamoDBDocument: () => DynamoDBDocument.from(plain),
  };

  it.each(Object.entries(KINDS))(
    '%s: makes the table, takes, renews, lists and releases locks',
    async (_name, kind) => {
      tables += 1;
      const table = `clients-${process.pid}-${tables}`;
      const client = kind();
      expect(await createTable(client, { table })).toMatchObject({ created: true, timeToLive: 'ttl' });
      const store = dynamodbStore(client, { table });
      const methods: DynamodbClient = new DynamoDB(settings());
      const other = dynamodbStore(methods, { table });
      const claim = claimOf('report', 'a', { metadata: '{"n":1}' });
      expect((await say(store, claim)).kind).toBe('granted');
      expect((await say(other, claimOf('report', 'b'))).kind).toBe('busy');
      expect((await say(store, renewOf(claim))).kind).toBe('renewed');
      expect((await store.read('report'))?.holders).toMatchObject([{ owner: 'a', metadata: '{"n":1}' }]);
      const listed: string[] = [];
      for await (const { key } of store.list({ prefix: '' })) listed.push(key);
      expect(listed).toEqual(['report']);
      expect((await store.probe()).findings.length).toBeGreaterThan(3);
      expect(await say(store, releaseOf(claim))).toMatchObject({ kind: 'released', held: true });
      await expect(say(dynamodbStore(client, { table: 'nowhere' }), claim)).rejects.toThrow(UnsupportedError);
      await Promise.all([store.close(), other.close()]);
      await plain.send(await deleteOf(table));
    },
  );

  it('document clients of one client share its time: its replies are watched once', () => {
    const base = new DynamoDBClient(settings());
    dynamodbStore(base);
    const before = base.middlewareStack.identify().length;
    for (let n = 0; n < 20; n++) dynamodbStore(DynamoDBDocumentClient.from(base));
    expect(base.middlewareStack.identify()).toHaveLength(before);
    base.destroy();
  });

  it('a store on a new document client knows the time that another one has learnt', async () => {
    const base = new DynamoDBClient(settings());
    const table = `shared-time-${process.pid}`;
    await createTable(base, { table });
    const calls: string[] = [];
    base.middlewareStack.add(
      (next, context) => (args) => {
        calls.push(String(context.commandName));
        return next(args);
      },
      { step: 'initialize' },
    );
    const openAndClaim = async (key: string) => {
      calls.length = 0;
      const store = dynamodbStore(DynamoDBDocumentClient.from(base), { table });
      expect((await say(store, claimOf(key, 'a'))).kind).toBe('granted');
      await store.close();
      return calls.slice();
    };
    await openAndClaim('first');
    expect(await openAndClaim('second')).toEqual(['UpdateItemCommand']);
    await base.send(await deleteOf(table));
    base.destroy();
  });

  it('a client of another service is no client, though it sends commands too', () => {
    const other = new DynamoDBClient({ ...settings(), serviceId: 'S3' });
    expect(() => dynamodbStore(other)).toThrow(InvalidArgumentError);
    expect(() => dynamodbStore(other)).toThrow(/a DynamoDB or DynamoDBClient of .* This is a client of S3\./);
    expect(() => dynamodbStore(DynamoDBDocumentClient.from(other))).toThrow(InvalidArgumentError);
    expect(() => dynamodbStore(new DynamoDB({ ...settings(), serviceId: 'S3' }))).toThrow(
      InvalidArgumentError,
    );
  });

  it('F1: a document client refuses the write of a paused holder, which its successor made obsolete', async () => {
    const client = DynamoDBDocumentClient.from(plain);
    const table = `accounts-${process.pid}`;
    await createTable(client, { table });
    const locks = createLocks(dynamodbStore(client, { table }));
    await locks.withLock('account:bob', () => undefined);
    await locks.close();
    const { paused, successor, close } = await takeover('account:ann');
    const guard = dynamodbGuard({ document: true });
    const add = (amount: number, token: number) =>
      guard.write(token, (fenced) =>
        client.send(
          new UpdateCommand(
            fenced.update({
              TableName: table,
              Key: { key: 'ann' },
              UpdateExpression: 'ADD balance :amount',
              ExpressionAttributeValues: { ':amount': amount },
              ReturnValues: 'ALL_NEW',
            }),
          ),
        ),
      );
    await add(10, successor.token);
    await expect(add(1, paused.token)).rejects.toThrow(LeaseLostError);
    expect((await add(5, successor.token)).Attributes).toMatchObject({ balance: 15, fence: successor.token });
    await close();
    await plain.send(await deleteOf(table));
  });

  it.each([undefined, null, {}, { send: () => undefined }, 'dynamodb://eu-west-1/locks'])(
    '%j is no client',
    (client) => {
      expect(() => dynamodbStore(client as never)).toThrow(InvalidArgumentError);
      expect(() => dynamodbStore(client as never)).toThrow(
        /DynamoDBDocumentClient of @aws-sdk\/lib-dynamodb/,
      );
    },
  );
});

async function deleteOf(TableName: string) {
  const { DeleteTableCommand } = await import('@aws-sdk/client-dynamodb');
  return new DeleteTableCommand({ TableName });
}
