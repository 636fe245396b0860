/** Holdfast on its DynamoDB store. The holder apart has a client of its own. */
import { createTable, dynamodbStore } from 'holdfast/dynamodb';
import { dynamodbRoundTrips, openDynamodb, openDynamodbApart } from '../dynamodb-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const client = openDynamodbApart(url);
    await createTable(client);
    client.destroy();
  },
  async open({ url, ttlMs }) {
    const client = openDynamodb(url);
    return openHoldfast(dynamodbStore(client), {
      ttlMs,
      openApart: async () => dynamodbStore(openDynamodbApart(url)),
      storeCalls: dynamodbRoundTrips,
      closed: async () => client.destroy(),
    });
  },
};
