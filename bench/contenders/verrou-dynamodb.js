/** The DynamoDB store of @verrou/core, on the client that the others have. It makes its table itself, on its first use. */
import { dynamodbStore } from '@verrou/core/drivers/dynamodb';
import { dynamodbRoundTrips, makeTable, openDynamodb } from '../dynamodb-client.js';
import { RETRY_MS } from '../plan.js';
import { openVerrou } from './verrou-session.js';

const TABLE = 'verrou';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  prepare: ({ url }) => makeTable(url, TABLE),
  async open({ url, ttlMs }) {
    const connection = openDynamodb(url);
    return openVerrou(dynamodbStore({ connection, table: { name: TABLE } }).factory(), {
      ttlMs,
      retryMs: RETRY_MS,
      storeCalls: dynamodbRoundTrips,
      close: async () => connection.destroy(),
    });
  },
};
