/** DynamoDB as the store's tests need it: a client and a table each. */
import { randomUUID } from 'node:crypto';
import { DynamoDB, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import {
  createTable,
  type DynamodbStoreOptions,
  type DynamodbTableClient,
  dynamodbStore,
} from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';
import { type DynamodbServer, type HttpFaults, startDynamodb, startHttpFaults } from 'holdfast-test-servers';
import { LeanClient } from '../../packages/holdfast/src/stores/dynamodb/lean-client.js';
import { claimOf } from '../store-talk.js';

export { claimOf, releaseOf, renewOf, say } from '../store-talk.js';

export function clientOf(endpoint: string, more: DynamoDBClientConfig = {}): DynamoDB {
  return new DynamoDB({
    endpoint,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' },
    ...more,
  });
}

/** A table of its own, made as users make it. */
export async function tableOn(
  client: DynamodbTableClient,
  options: DynamodbStoreOptions = {},
): Promise<string> {
  const table = `locks-${randomUUID()}`;
  await createTable(client, { ...options, table });
  return table;
}

/** A client as `openStore` opens it. */
export function leanClientOf(endpoint: string): LeanClient {
  const place = { endpoint: new URL(endpoint), region: 'eu-central-1' };
  const credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
  return new LeanClient({
    place: async () => place,
    credentials: async () => credentials,
    requestMs: 20_000,
    connectionsMax: 256,
  });
}

/**
 * Clients that know the time already: the header has whole seconds, so it takes a tick to know it well. A suite that
 * waits for ends would wait for seconds otherwise, each time.
 */
export async function warmClients<C extends DynamodbTableClient>(
  clientOn: (endpoint: string) => C,
  endpoint: string,
  count: number,
): Promise<readonly C[]> {
  const clients = Array.from({ length: count }, () => clientOn(endpoint));
  const [first] = clients;
  if (!first) return clients;
  const table = await tableOn(first);
  await writeSome(dynamodbStore(first, { table }));
  await Promise.all(clients.map((client) => readTime(dynamodbStore(client, { table }))));
  return clients;
}

/** Java takes long to become fast: a hundred writes at once would be given up. */
async function writeSome(store: Store): Promise<void> {
  for (let at = 0; at < 60; at++) await Promise.all(store.apply([claimOf(`warm-${at}`, 'nobody')]));
  await store.close();
}

/** The first store on a client is what makes it read the header. */
async function readTime(store: Store): Promise<void> {
  const until = performance.now() + 1_300;
  while (performance.now() < until) {
    await store.read('nobody');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await store.close();
}

/** How much later than it ends something may count as over, for clients that are warm, on a busy machine. */
const DOUBT_MS = 400;

export function harnessOf(
  name: string,
  open: () => Store,
  raw: () => DynamoDB,
  table: () => string,
): Harness {
  return {
    name,
    open: async () => open(),
    async forget(key) {
      await raw().deleteItem({ TableName: table(), Key: { key: { S: key } } });
    },
    async spoil(key) {
      await raw().updateItem({
        TableName: table(),
        Key: { key: { S: key } },
        UpdateExpression: 'SET #version = :later',
        ExpressionAttributeNames: { '#version': 'version' },
        ExpressionAttributeValues: { ':later': { N: '99' } },
      });
    },
    doubtMs: DOUBT_MS,
    lineMax: WAITERS_MAX,
  };
}

/** A private server behind a proxy that counts and breaks calls, and an end to all of it. */
export interface FaultyWorld {
  readonly server: DynamodbServer;
  readonly faults: HttpFaults;
  /** Through the proxy. */
  client(more?: DynamoDBClientConfig): DynamoDB;
  stop(): Promise<void>;
}

export async function faultyWorld(): Promise<FaultyWorld> {
  const server = await startDynamodb();
  const faults = await startHttpFaults(server);
  const clients: DynamoDB[] = [];
  return {
    server,
    faults,
    client(more) {
      const client = clientOf(faults.url, more);
      clients.push(client);
      return client;
    },
    async stop() {
      for (const client of clients) client.destroy();
      await faults.stop();
      await server.stop();
    },
  };
}

/** The operations on locks that came in while this ran. */
export async function lockOperationsOf(faults: HttpFaults, work: () => Promise<unknown>): Promise<string[]> {
  const calls = await callsDuring(faults, work);
  return calls.filter((call) => !isTimeCall(call)).map(({ operation }) => operation);
}

/** A question for the time. A process that stood still on a busy machine asks again. */
export const isTimeCall = ({ body }: HttpFaults['calls'][number]): boolean => body.includes('holdfast-time');

export async function callsDuring(
  faults: HttpFaults,
  work: () => Promise<unknown>,
): Promise<HttpFaults['calls']> {
  const before = faults.calls.length;
  await work();
  return faults.calls.slice(before);
}

/** The item of a lock, as it lies there. */
export async function itemOf(client: DynamoDB, table: string, key: string) {
  const { Item } = await client.getItem({ TableName: table, Key: { key: { S: key } }, ConsistentRead: true });
  return Item;
}
