/**
 * The least that a lock in DynamoDB can be: one conditional put, that takes the item if it is absent or expired by this
 * machine's clock, and one conditional delete, that compares the owner. No token, no renewal; who finds the key held
 * looks again after a while.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { dynamodbRoundTrips, makeTable, openDynamodb } from '../dynamodb-client.js';
import { RETRY_MS } from '../plan.js';

const TABLE = 'minimum';

/** @param {ReturnType<typeof openDynamodb>} client @param {string} key @param {string} owner @param {number} ttlMs */
async function take(client, key, owner, ttlMs) {
  const now = Date.now();
  try {
    await client.putItem({
      TableName: TABLE,
      Item: { key: { S: key }, owner: { S: owner }, expiresAt: { N: String(now + ttlMs) } },
      ConditionExpression: 'attribute_not_exists(#key) OR #expiresAt <= :now',
      ExpressionAttributeNames: { '#key': 'key', '#expiresAt': 'expiresAt' },
      ExpressionAttributeValues: { ':now': { N: String(now) } },
    });
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'ConditionalCheckFailedException') return false;
    throw error;
  }
}

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  prepare: ({ url }) => makeTable(url, TABLE),
  async open({ url, ttlMs }) {
    const client = openDynamodb(url);
    return {
      cycle: (key, work) => async () => {
        const owner = randomUUID();
        while (!(await take(client, key, owner, ttlMs))) await sleep(RETRY_MS);
        if (work) await work();
        await client.deleteItem({
          TableName: TABLE,
          Key: { key: { S: key } },
          ConditionExpression: '#owner = :owner',
          ExpressionAttributeNames: { '#owner': 'owner' },
          ExpressionAttributeValues: { ':owner': { S: owner } },
        });
      },
      storeCalls: dynamodbRoundTrips,
      close: async () => client.destroy(),
    };
  },
};
