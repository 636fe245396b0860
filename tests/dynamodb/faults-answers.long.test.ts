/** Answers that never come, and the engine over all that can go wrong between it and DynamoDB. */
import { createLocks, StoreError } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import { available, type DynamodbServer, startDynamodb, startHttpFaults } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { clientOf, tableOn } from './store-scene.js';

/** More than the SDK keeps connections, by default. */
const HUNG = 60;

describe.runIf(available('dynamodb'))('answers of DynamoDB', { timeout: 90_000 }, () => {
  let server: DynamodbServer;
  beforeAll(async () => {
    server = await startDynamodb();
  });
  afterAll(() => server?.stop());

  it('F3: that never come hold up nothing for good, though they outnumber the connections', async ({
    onTestFinished,
  }) => {
    const faults = await startHttpFaults(server);
    const client = clientOf(faults.url);
    const table = await tableOn(client);
    const locks = createLocks(dynamodbStore(client, { table }), { ttl: '20s' });
    onTestFinished(async () => {
      await locks.close({ drain: 0 });
      client.destroy();
      await faults.stop();
    });
    await (await locks.acquire('warm', { wait: '30s' })).release();
    faults.delayReplies(3_600_000, { times: HUNG });
    const names = Array.from({ length: HUNG }, (_, at) => `k${at}`);
    const outcomes = await Promise.allSettled(names.map((name) => locks.acquire(name, { wait: 1_000 })));
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') await outcome.value.release();
      else expect(outcome.reason).toBeInstanceOf(StoreError);
    }
    // Asked again, all of them are answered by now.
    const leases = await Promise.all(names.map((name) => locks.acquire(name, { wait: '40s' })));
    expect(leases.map(({ held }) => held)).toEqual(names.map(() => true));
  });

  const seed = Math.floor(Math.random() * 1_000_000);

  it(`F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (seed ${seed})`, async () => {
    const clients = Array.from({ length: 5 }, () => clientOf(server.url));
    const [first = clientOf(server.url)] = clients;
    const table = await tableOn(first);
    const [looking, ...stores] = clients.map((client) => dynamodbStore(client, { table }));
    if (!looking) throw new Error('No store.');
    await expectExclusion({ stores, key: 'faulty', seed, runMs: 4_000, ttlMs: [300, 900] }, looking);
    for (const client of clients) client.destroy();
  });
});
