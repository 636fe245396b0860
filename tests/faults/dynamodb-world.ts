/**
 * DynamoDB Local as a world to break. It takes long to start and much memory, so cases share it, each with a table of its
 * own; those that break it have their tables on disk and come one after the other.
 */
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createTable } from 'holdfast/dynamodb';
import { type DynamodbServer, startDynamodb } from 'holdfast-servers';
import type { Server, World } from './world.js';

export function dynamodbWorld(): World {
  const started = new Map<'memory' | 'disk', Promise<DynamodbServer>>();
  let tables = 0;
  const placeOn = async (storage: 'memory' | 'disk'): Promise<Server> => {
    const table = `locks-${tables++}`;
    const starting = started.get(storage) ?? startDynamodb({ own: true, storage });
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

async function tableOn(endpoint: string, table: string): Promise<string> {
  const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
  const client = new DynamoDB({ endpoint, region: 'eu-central-1', credentials });
  await createTable(client, { table }).finally(() => client.destroy());
  return `${endpoint}/${table}`;
}
