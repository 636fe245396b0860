/**
 * DynamoDB Local as a world to break. It takes long to start and much memory, so there is one, with its tables on disk:
 * every case has a table of its own there, and those that break the server come one after the other.
 */
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createTable } from 'holdfast/dynamodb';
import { type DynamodbServer, startDynamodb } from 'holdfast-servers';
import type { Server, World } from './world.js';

export function dynamodbWorld(): World {
  let shared: Promise<DynamodbServer> | null = null;
  let tables = 0;
  const startServer = async (): Promise<Server> => {
    const table = `locks-${tables++}`;
    shared ??= startDynamodb({ own: true, storage: 'disk' });
    const server = await shared;
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
    startServer,
    openPlace: startServer,
    async close() {
      await (await shared)?.stop();
    },
  };
}

async function tableOn(endpoint: string, table: string): Promise<string> {
  const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
  const client = new DynamoDB({ endpoint, region: 'eu-central-1', credentials });
  await createTable(client, { table }).finally(() => client.destroy());
  return `${endpoint}/${table}`;
}
