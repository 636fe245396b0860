import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type DynamodbClient, dynamodbStore } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import type { LeanClient } from '../../packages/holdfast/src/stores/dynamodb/lean-client.js';
import { isLongRun } from '../long-run.js';
import { runSuite } from '../store-talk.js';
import { clientOf, harnessOf, leanClientOf, tableOn, warmClients } from './store-scene.js';

describe.runIf(available('dynamodb'))('DynamoDB Local', () => {
  let server: DynamodbServer;
  let raw: DynamoDB;
  let table: string;
  let clients: readonly DynamoDB[] = [];
  let leanClients: readonly LeanClient[] = [];
  let opened = 0;

  beforeAll(async () => {
    server = await startDynamodb();
    raw = clientOf(server.url);
    table = await tableOn(raw);
    clients = await warmClients(clientOf, server.url, 6);
    if (isLongRun) leanClients = await warmClients(leanClientOf, server.url, 6);
  });

  afterAll(async () => {
    for (const client of [raw, ...clients, ...leanClients]) client?.destroy();
    await server?.stop();
  });

  function open(queue: boolean, from: readonly DynamodbClient[]): Store {
    const client = from[opened++ % from.length];
    if (!client) throw new Error('No client.');
    return dynamodbStore(client, { table, queue });
  }

  const suiteOn = (name: string, queue: boolean, from: () => readonly DynamodbClient[]): Harness =>
    harnessOf(
      name,
      () => open(queue, from()),
      () => raw,
      () => table,
    );
  const isSlow = true;
  const long = { when: 'long-run', isSlow } as const;
  const withQueue = suiteOn('with a queue', true, () => clients);
  const withoutQueue = suiteOn('without a queue', false, () => clients);
  const lean = suiteOn('with the client of a URL', true, () => leanClients);
  runSuite(withQueue, 150, { isSlow });
  runSuite(withoutQueue, 50, long);
  runSuite(lean, 50, long);
});
