/**
 * A process with whatever clock it was given: asks for a key again and again, and says every answer. With `hold` it
 * keeps the first lease that it gets, and says so, until its standard input ends.
 */
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';

/** @type {{ endpoint: string, table: string, key: string, ttlMs: number, hold: boolean }} */
const task = JSON.parse(process.argv[2] ?? '{}');
const client = new DynamoDB({
  endpoint: task.endpoint,
  region: 'eu-central-1',
  credentials: { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' },
});
const locks = createLocks(dynamodbStore(client, { table: task.table }), { ttl: task.ttlMs });

let over = false;
process.stdin.on('end', () => {
  over = true;
});
process.stdin.resume();
console.log(`ready ${new Date().toISOString()}`);
while (!over) {
  const lease = await locks.tryAcquire(task.key);
  console.log(lease ? `granted ${lease.token}` : 'busy');
  while (lease && task.hold && !over) {
    console.log(lease.held ? 'held' : 'lost');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await lease?.release();
  await new Promise((resolve) => setTimeout(resolve, 20));
}
await locks.close({ drain: 0 });
client.destroy();
