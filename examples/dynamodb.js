// @ts-check
/**
 * Three processes, as if on three machines, count to fifteen in an item of DynamoDB. Each step reads and writes in two
 * calls, so that without the lock steps would be lost. The second call is guarded by the token as well.
 *
 * AWS_REGION=eu-west-1 AWS_ENDPOINT_URL_DYNAMODB=http://localhost:8000 node examples/dynamodb.js
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks } from 'holdfast';
import { createTable, dynamodbStore } from 'holdfast/dynamodb';
import { dynamodbGuard } from 'holdfast/fences';

const PROCESSES = 3;
const STEPS = 5;
const TableName = 'holdfast-example';

/** @param {DynamoDB} client @param {string} counter */
async function countIn(client, counter) {
  const { Item } = await client.getItem({ TableName, Key: { key: { S: counter } }, ConsistentRead: true });
  return Number(Item?.count?.N ?? 0);
}

/** @param {string} counter */
async function work(counter) {
  const client = new DynamoDB();
  const locks = createLocks(dynamodbStore(client, { table: TableName }));
  const guard = dynamodbGuard();
  for (let step = 0; step < STEPS; step++) {
    await locks.withLock(
      counter,
      async ({ token }) => {
        const count = await countIn(client, counter);
        const Item = { key: { S: counter }, count: { N: String(count + 1) } };
        await guard.write(token, (fenced) => client.putItem(fenced.put({ TableName, Item })));
      },
      { wait: '1m' },
    );
  }
  await locks.close();
  client.destroy();
}

async function main() {
  const client = new DynamoDB();
  await createTable(client, { table: TableName });
  const counter = `example:${process.pid}:${Date.now()}`;
  const workers = Array.from({ length: PROCESSES }, () => fork(import.meta.filename, ['worker', counter]));
  const exits = await Promise.all(workers.map((worker) => once(worker, 'exit')));
  assert.ok(
    exits.every(([code]) => code === 0),
    'every process ended well',
  );
  const count = await countIn(client, counter);
  await client.deleteItem({ TableName, Key: { key: { S: counter } } });
  client.destroy();
  console.log(`${PROCESSES} processes counted to ${count}`);
  assert.equal(count, PROCESSES * STEPS, 'no step was lost');
}

const [, , role, counter] = process.argv;
await (role === 'worker' && counter ? work(counter) : main());
