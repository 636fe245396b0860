/**
 * DynamoDB Local as a world to break. It takes long to start and much memory, so cases share it, each with a table of its
 * own; those that break it have their tables on disk and come one after the other.
 */
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks } from 'holdfast';
import { createTable, dynamodbStore } from 'holdfast/dynamodb';
import { type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import type { Server, World } from './world.js';

export function dynamodbWorld(): World {
  const started = new Map<'memory' | 'disk', Promise<DynamodbServer>>();
  let tables = 0;
  const placeOn = async (storage: 'memory' | 'disk'): Promise<Server> => {
    const table = `locks-${tables++}`;
    const starting = started.get(storage) ?? startWarm(storage);
    started.set(storage, starting);
    const server = await starting;
    return {
      ...server,
      url: await tableOn(server.url, table),
      // Nobody hears hints here: every waiter asks again by itself.
      cutListeners: () => Promise.resolve(0),
      // It goes with the server.
      stop: () => Promise.resolve(),
    };
  };
  return {
    name: 'DynamoDB',
    driver: 'dynamodb',
    durable: true,
    oneServer: true,
    restMs: 400,
    startServer: () => placeOn('disk'),
    openPlace: () => placeOn('memory'),
    async close() {
      for (const server of started.values()) await (await server).stop();
    },
  };
}

function clientOf(endpoint: string): DynamoDB {
  const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
  return new DynamoDB({ endpoint, region: 'eu-central-1', credentials });
}

async function tableOn(endpoint: string, table: string): Promise<string> {
  const client = clientOf(endpoint);
  await createTable(client, { table }).finally(() => client.destroy());
  return `${endpoint}/${table}`;
}

/** Its first answers take seconds on a busy machine: Java loads what it needs only then. */
async function startWarm(storage: 'memory' | 'disk'): Promise<DynamodbServer> {
  const server = await startDynamodb({ own: true, storage });
  await tableOn(server.url, 'warm');
  const client = clientOf(server.url);
  const locks = createLocks(dynamodbStore(client, { table: 'warm' }));
  for (let round = 0; round < 10; round++)
    await locks.withLock('warm', async () => undefined, { wait: '30s' });
  await locks.close({ drain: 0 });
  client.destroy();
  return server;
}
