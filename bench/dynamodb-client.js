/**
 * The clients that DynamoDB contenders get: version 3 of the SDK with its defaults, and version 2 for the library that
 * needs it, with connections kept open, which is its default in 3. Round trips are counted where a request is sent: a
 * request that the SDK sends again is another one.
 */
import { Agent } from 'node:http';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import DynamoDB2 from 'aws-sdk/clients/dynamodb.js';

// Otherwise both tell on standard error which versions are at their end.
process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = '1';
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

/** The emulator takes any. */
const REGION = 'eu-central-1';
const CREDENTIALS = { accessKeyId: 'bench', secretAccessKey: 'bench' };
/** As many as version 3 has. */
const CONNECTIONS = 50;

/** @typedef {{ on(event: 'send', heard: () => void): void }} Request2 */
/** @typedef {{ service: { customizeRequests(watch: (request: Request2) => void): void } }} Watched */

let roundTrips = 0;

/** @param {string} url */
export function openDynamodb(url) {
  const client = openDynamodbApart(url);
  client.middlewareStack.add(
    (next) => (request) => {
      roundTrips += 1;
      return next(request);
    },
    { step: 'deserialize' },
  );
  return client;
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export function openDynamodbApart(url) {
  return new DynamoDB({ endpoint: url, region: REGION, credentials: CREDENTIALS });
}

/** @param {string} url */
export function openDynamodb2(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const service = new DynamoDB2({
    endpoint: url,
    region: REGION,
    credentials: CREDENTIALS,
    httpOptions: { agent },
  });
  const client = new DynamoDB2.DocumentClient({ service });
  // It works with a copy of the service. The types know neither the copy nor its method.
  const { service: used } = /** @type {Watched} */ (/** @type {unknown} */ (client));
  used.customizeRequests((request) => {
    request.on('send', () => {
      roundTrips += 1;
    });
  });
  return { client, close: () => agent.destroy() };
}

export function dynamodbRoundTrips() {
  return roundTrips;
}

/** A table whose key is a text named `key`. @param {string} url @param {string} table */
export async function makeTable(url, table) {
  const client = openDynamodbApart(url);
  await client.createTable({
    TableName: table,
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  client.destroy();
}
