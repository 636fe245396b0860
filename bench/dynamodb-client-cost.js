/**
 * What two calls to DynamoDB cost the processor of the client, 64 in flight: the client behind dynamodb:// URLs, and the
 * SDK's. The server is a process of its own that answers at once, so that its work does not count.
 *
 *   node bench/dynamodb-client-cost.js
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { LeanClient } from '../packages/holdfast/dist/stores/dynamodb/lean-client.js';

const IN_FLIGHT = 64;
const WARM_UP_MS = 1_500;
const MEASURE_MS = 3_000;
const ROUNDS = 3;

/** Like a claim. */
const UPDATE = {
  TableName: 'locks',
  Key: { key: { S: 'default/job' } },
  UpdateExpression: 'SET #a = :a, #b = :b REMOVE #c',
  ConditionExpression: 'attribute_not_exists(#a) OR #a < :a',
  ExpressionAttributeNames: { '#a': 'a', '#b': 'b', '#c': 'c' },
  ExpressionAttributeValues: { ':a': { N: '1' }, ':b': { S: 'x'.repeat(40) } },
  ReturnValues: /** @type {const} */ ('ALL_NEW'),
};

function serve() {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{"Attributes":{"key":{"S":"default/job"}}}'));
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') process.send?.(address.port);
  });
}

/** Microseconds for two calls. @param {() => PromiseLike<unknown>} call */
async function costOf(call) {
  let calls = 0;
  const during = async (/** @type {number} */ ms) => {
    const until = performance.now() + ms;
    const loop = async () => {
      while (performance.now() < until) {
        await call();
        calls += 1;
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, loop));
  };
  await during(WARM_UP_MS);
  calls = 0;
  const before = process.cpuUsage();
  await during(MEASURE_MS);
  const { user, system } = process.cpuUsage(before);
  return Math.round((2 * (user + system)) / calls);
}

async function measure() {
  const server = fork(new URL(import.meta.url), ['serve']);
  const port = await new Promise((resolve) => server.once('message', resolve));
  const endpoint = `http://127.0.0.1:${port}/`;
  const region = 'eu-west-1';
  const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' };
  const lean = new LeanClient({
    place: async () => ({ endpoint: new URL(endpoint), region }),
    credentials: async () => credentials,
    requestMs: 3_000,
    connectionsMax: 256,
  });
  const requestHandler = { httpAgent: { maxSockets: 256 } };
  const sdk = new DynamoDB({ endpoint, region, credentials, maxAttempts: 1, requestHandler });
  for (let round = 0; round < ROUNDS; round++) {
    const own = await costOf(() => lean.updateItem(/** @type {never} */ (UPDATE)));
    const theirs = await costOf(() => sdk.updateItem(UPDATE));
    console.log(`own client ${own} µs, SDK ${theirs} µs: ${(own / theirs).toFixed(2)}×`);
  }
  lean.destroy();
  sdk.destroy();
  server.kill();
}

if (process.argv[2] === 'serve') serve();
else await measure();
