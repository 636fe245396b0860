import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { dynamodbStore } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import { conformanceSuite, type Harness } from 'holdfast/testkit';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { casesOf, isLongRun, sequencesOf, type When } from '../long-run.js';
import { clientOf, harnessOf, tableOn, warmClients } from './store-scene.js';

const CASE_MS_MAX = 240_000;

function runSuite(harness: Harness, sequences: number, when: When): void {
  if (when === 'long-run' && !isLongRun) return;
  const seed = Math.floor(Math.random() * 2 ** 31);
  describe(`${harness.name} (seed ${seed})`, () => {
    const cases = conformanceSuite(harness, { sequences: sequencesOf(sequences), seed, atOnce: 60 });
    for (const { name, run } of casesOf(cases, when)) it(name, run, CASE_MS_MAX);
  });
}

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
  runSuite(withQueue(true), 300, 'always');
  runSuite(withQueue(false), 50, 'long-run');
});
