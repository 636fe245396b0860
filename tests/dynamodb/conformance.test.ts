import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { dynamodbStore } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { runSuite } from '../store-talk.js';
import { clientOf, harnessOf, tableOn, warmClients } from './store-scene.js';

describe.runIf(available('dynamodb'))('DynamoDB Local', () => {
  let server: DynamodbServer;
  let raw: DynamoDB;
  let table: string;
  let clients: readonly DynamoDB[] = [];
  let opened = 0;

  beforeAll(async () => {
    server = await startDynamodb();
    raw = clientOf(server.url);
    table = await tableOn(raw);
    clients = await warmClients(server.url, 6);
  });

  afterAll(async () => {
    for (const client of [raw, ...clients]) client?.destroy();
    await server?.stop();
  });

  function open(queue: boolean): Store {
    const client = clients[opened++ % clients.length];
    if (!client) throw new Error('No client.');
    return dynamodbStore(client, { table, queue });
  }

  const withQueue = (queue: boolean): Harness =>
    harnessOf(
      queue ? 'with a queue' : 'without a queue',
      () => open(queue),
      () => raw,
      () => table,
    );
  runSuite(withQueue(true), 150, { isSlow: true });
  runSuite(withQueue(false), 50, { when: 'long-run', isSlow: true });
});
