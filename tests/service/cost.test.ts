/** What the service asks of a store that charges for every read, when nobody asked it to. Counted at DynamoDB Local. */
import { dynamodbStore } from 'holdfast/dynamodb';
import { createService, type Service } from 'holdfast-service';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FaultyWorld, faultyWorld, lockOperationsOf, tableOn } from '../dynamodb/store-scene.js';
import { pause, until } from '../scene.js';

/** Longer than two of the rounds that are made on a store without charge. */
const ROUNDS_MS = 2_500;

describe.runIf(available('dynamodb'))('the service on DynamoDB, where every look costs money', () => {
  let world: FaultyWorld;
  let service: Service;
  let url: string;

  beforeAll(async () => {
    world = await faultyWorld();
    const client = world.client();
    const store = dynamodbStore(client, { table: await tableOn(client) });
    service = createService({ store });
    url = await service.listen();
    await until(async () => (await acquire('first')).status === 200, 'DynamoDB answers');
    // On a busy machine an attempt that was answered late was sent again, and that one reads the record.
    await until(async () => {
      const before = world.faults.calls.length;
      await pause(1_000);
      return world.faults.calls.length === before;
    }, 'no call is on its way');
  });
  afterAll(async () => {
    await service?.close();
    await world?.stop();
  });

  const during = (work: () => Promise<unknown>): Promise<string[]> => lockOperationsOf(world.faults, work);
  const acquire = (name: string): Promise<Response> =>
    fetch(`${url}/v2/locks/shop/${name}/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"ttl": "60s"}',
    });

  it('/metrics scans nothing, and leaves out the gauges that it would have to count', async () => {
    let text = '';
    const calls = await during(async () => {
      text = await (await fetch(`${url}/metrics`)).text();
    });
    expect(calls).toEqual([]);
    expect(text).toContain('holdfast_waiting_here 0');
    expect(text).not.toMatch(/^holdfast_(?:held|waiting|hold_age_seconds\w*) /m);
  });

  it('/readyz reads nothing while the store has answered within 10 s', async () => {
    const calls = await during(async () => {
      for (let times = 0; times < 20; times++) expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });
    expect(calls.length).toBeLessThanOrEqual(1);
  });

  it('an open dashboard scans once, not once a second, and still shows at once what goes through it', async () => {
    const before = world.faults.count('Scan');
    const leaving = new AbortController();
    const stream = await fetch(`${url}/v2/events`, { signal: leaving.signal });
    let text = '';
    const read = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of stream.body ?? []) text += decoder.decode(chunk as Uint8Array);
    })().catch((error: unknown) => {
      if (!leaving.signal.aborted) throw error;
    });
    await until(() => text.includes('event: ready'), 'it is ready');
    await pause(ROUNDS_MS);
    await acquire('second');
    await until(() => text.includes('shop/second'), 'the lock appears');
    expect(world.faults.count('Scan') - before).toBe(1);
    const session = (await (await fetch(`${url}/dashboard/session`)).json()) as { roundMs: number };
    expect(session.roundMs).toBe(60_000);
    leaving.abort();
    await read;
  });
});
