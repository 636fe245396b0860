import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { available, type DynamodbServer, startDynamodb } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { createTable, dynamodbStore } from '../../packages/holdfast/src/stores/dynamodb/index.js';
import { blocks } from '../repository/markdown.js';
import { read } from '../repository/tree.js';

describe.runIf(available('dynamodb'))('the rights that docs/stores/dynamodb.md asks for', () => {
  const page = blocks.filter((block) => block.page === 'docs/stores/dynamodb.md');
  let server: DynamodbServer;
  let client: DynamoDB;
  const asked = new Set<string>();
  const table = `rights-${process.pid}`;

  beforeAll(async () => {
    server = await startDynamodb();
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    client = new DynamoDB({ endpoint: server.url, region: 'eu-west-1', credentials });
    client.middlewareStack.add(
      (next, { commandName = '' }) =>
        (args) => {
          asked.add(`dynamodb:${commandName.replace(/Command$/, '')}`);
          return next(args);
        },
      { step: 'initialize' },
    );
  });
  afterAll(async () => {
    await client?.deleteTable({ TableName: table });
    client?.destroy();
    await server?.stop();
  });

  /** A right that the table of the page names beside a purpose. */
  const rightsFor = (purpose: RegExp): readonly string[] => {
    const rows = read('docs/stores/dynamodb.md')
      .split('\n')
      .filter((line) => /^\| `[A-Z]\w+`.*\|/.test(line));
    const [row = ''] = rows.filter((line) => purpose.test(line));
    return [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => `dynamodb:${name}`).sort();
  };

  async function callsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
    asked.clear();
    await work();
    return [...asked].sort();
  }

  it('are those of the calls that are made, no more and no less', async () => {
    const made = await callsOf(() => createTable(client, { table }));
    expect(made).toEqual(rightsFor(/`createTable`/));
    const store = dynamodbStore(client, { table });
    const [policy] = page.filter(({ code }) => /"Action"/.test(code));
    const { Action } = JSON.parse(policy?.code ?? '{}').Statement[0];
    const locks = createLocks(store);
    const other = createLocks(dynamodbStore(client, { table, queue: true }));
    const locking = await callsOf(async () => {
      const lease = await locks.acquire('job', { ttl: '30s', renew: false });
      await lease.renew();
      expect(await other.tryAcquire('job', { wait: 500 })).toBeNull();
      await lease.release();
      await (await other.acquire('job')).release();
      await locks.inspect('job');
      await locks.evict('job');
    });
    expect(locking).toEqual([...Action].sort());
    expect(locking).toEqual(rightsFor(/the locks, and the time/));
    const listing = await callsOf(async () => {
      for await (const { key } of locks.list()) expect(key).toBe('nothing is held');
    });
    expect(listing).toEqual(rightsFor(/holdfast ls/));
    const probing = await callsOf(() => locks.probe());
    expect(probing.filter((call) => !Action.includes(call))).toEqual(rightsFor(/`probe\(\)`/));
    await locks.close({ drain: 0 });
    await other.close();
  });
});
