import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { InvalidArgumentError, LeaseLostError } from 'holdfast';
import { dynamodbGuard } from 'holdfast/fences';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const TABLE = 'accounts';

describe.runIf(available('dynamodb'))('the guard of a DynamoDB item', () => {
  let server: DynamodbServer;
  let client: DynamoDB;
  let names = 0;

  beforeAll(async () => {
    server = await startDynamodb();
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    client = new DynamoDB({ endpoint: server.url, region: 'eu-west-1', credentials });
    await client.createTable({
      TableName: TABLE,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    });
  });
  afterAll(async () => {
    await client?.deleteTable({ TableName: TABLE });
    client?.destroy();
    await server?.stop();
  });

  const guard = dynamodbGuard();
  const fresh = (): { id: { S: string } } => {
    names += 1;
    return { id: { S: `account-${names}` } };
  };
  const itemOf = async (Key: { id: { S: string } }) =>
    (await client.getItem({ TableName: TABLE, Key, ConsistentRead: true })).Item;
  const add = (Key: { id: { S: string } }, token: number, amount: number) =>
    guard.write(token, (fenced) =>
      client.updateItem(
        fenced.update({
          TableName: TABLE,
          Key,
          UpdateExpression: 'ADD amount :amount',
          ExpressionAttributeValues: { ':amount': { N: String(amount) } },
        }),
      ),
    );

  it('F1: refuses an update with a lower token than one that has written, and writes nothing', async () => {
    const key = fresh();
    await add(key, 1_000, 10);
    await add(key, 1_000, 10);
    await add(key, 2_000, 1);
    await expect(add(key, 1_999, 100)).rejects.toThrow(LeaseLostError);
    expect(await itemOf(key)).toEqual({ ...key, amount: { N: '21' }, fence: { N: '2000' } });
  });

  it('does the same for a put, of numbers as great as tokens are', async () => {
    const key = fresh();
    const token = 1_794_781_702_310_001;
    const put = (at: number, state: string) =>
      guard.write(at, (fenced) =>
        client.putItem(fenced.put({ TableName: TABLE, Item: { ...key, state: { S: state } } })),
      );
    await put(token, 'new');
    await expect(put(token - 1, 'old')).rejects.toThrow(/token 1794781702310000: a later holder/);
    expect(await itemOf(key)).toEqual({ ...key, state: { S: 'new' }, fence: { N: String(token) } });
  });

  it('takes any token on an item from before the fence', async () => {
    const key = fresh();
    await client.putItem({ TableName: TABLE, Item: { ...key, amount: { N: '1' } } });
    await add(key, 5, 1);
    expect(await itemOf(key)).toEqual({ ...key, amount: { N: '2' }, fence: { N: '5' } });
  });

  it.each([
    ['SET #set = :set, b = :set', { a: { S: 'x' }, b: { S: 'x' } }],
    ['REMOVE c SET #set = :set', { a: { S: 'x' } }],
    ['set #set = :set ADD n :n', { a: { S: 'x' }, n: { N: '1' } }],
  ])('finds its place in %j', async (UpdateExpression, expected) => {
    const key = fresh();
    await guard.write(7, (fenced) =>
      client.updateItem(
        fenced.update({
          TableName: TABLE,
          Key: key,
          UpdateExpression,
          ExpressionAttributeNames: { '#set': 'a' },
          ExpressionAttributeValues: {
            ':set': { S: 'x' },
            ...(UpdateExpression.includes(':n') ? { ':n': { N: '1' } } : {}),
          },
        }),
      ),
    );
    expect(await itemOf(key)).toEqual({ ...key, ...expected, fence: { N: '7' } });
  });

  it('stamps alone, where there is nothing else to write', async () => {
    const key = fresh();
    await guard.write(7, (fenced) => client.updateItem(fenced.update({ TableName: TABLE, Key: key })));
    expect(await itemOf(key)).toEqual({ ...key, fence: { N: '7' } });
  });

  it('leaves a condition of your own to you, and F23: a reserved word is a fine name', async () => {
    const owned = dynamodbGuard({ attribute: 'Owner' });
    const key = fresh();
    const create = (token: number) =>
      owned.write(token, (fenced) =>
        client.putItem(
          fenced.put({
            TableName: TABLE,
            Item: key,
            ConditionExpression: 'attribute_not_exists(id) OR id = :no',
            ExpressionAttributeValues: { ':no': { S: 'no' } },
          }),
        ),
      );
    await create(3);
    await expect(create(4)).rejects.toThrow(
      expect.objectContaining({ name: 'ConditionalCheckFailedException' }),
    );
    await expect(create(2)).rejects.toThrow(LeaseLostError);
    expect(await itemOf(key)).toEqual({ ...key, Owner: { N: '3' } });
  });

  it('does not take something that is no token for a later holder', async () => {
    const key = fresh();
    await client.putItem({ TableName: TABLE, Item: { ...key, fence: { S: 'mine' } } });
    await expect(add(key, 5, 1)).rejects.toThrow(
      expect.objectContaining({ name: 'ConditionalCheckFailedException' }),
    );
  });

  it('guards a delete, and every write of a transaction', async () => {
    const [one, two] = [fresh(), fresh()];
    await add(two, 10, 1);
    const both = (token: number) =>
      guard.write(token, (fenced) =>
        client.transactWriteItems({
          TransactItems: [
            { Put: fenced.put({ TableName: TABLE, Item: { ...one } }) },
            { Delete: fenced.compare({ TableName: TABLE, Key: two }) },
          ],
        }),
      );
    await expect(both(9)).rejects.toThrow(LeaseLostError);
    expect(await itemOf(one)).toBeUndefined();
    await both(11);
    expect(await itemOf(one)).toEqual({ ...one, fence: { N: '11' } });
    expect(await itemOf(two)).toBeUndefined();
  });

  it('lets other failures through as they are', async () => {
    const failing = guard.write(5, (fenced) =>
      client.putItem(fenced.put({ TableName: 'nowhere', Item: fresh() })),
    );
    await expect(failing).rejects.toThrow(expect.objectContaining({ name: 'ResourceNotFoundException' }));
  });
});

describe('the guard of a DynamoDB item, before anything is sent', () => {
  it('writes plain values for a document client', async () => {
    const input = await dynamodbGuard({ document: true }).write(5, async (fenced) =>
      fenced.put({ TableName: TABLE, Item: { id: 'a' } }),
    );
    expect(input).toMatchObject({
      Item: { id: 'a', fence: 5 },
      ExpressionAttributeValues: { ':holdfastToken': 5 },
    });
  });

  it('understands an endpoint that does not return the item, unless a condition of your own may be the reason', async () => {
    const failed = Object.assign(new Error('The conditional request failed'), {
      name: 'ConditionalCheckFailedException',
    });
    const fails = (ConditionExpression?: string) =>
      dynamodbGuard().write(5, async (fenced) => {
        fenced.update({ TableName: TABLE, ConditionExpression });
        throw failed;
      });
    await expect(fails()).rejects.toThrow(LeaseLostError);
    await expect(fails('attribute_exists(id)')).rejects.toBe(failed);
  });

  it('refuses what is no token, and names that are none', async () => {
    await expect(dynamodbGuard().write(0, async () => 'written')).rejects.toThrow(InvalidArgumentError);
    expect(() => dynamodbGuard({ attribute: '' })).toThrow(InvalidArgumentError);
    expect(() => dynamodbGuard({ colum: 'x' } as never)).toThrow(InvalidArgumentError);
  });
});
