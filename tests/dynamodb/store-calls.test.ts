import { setTimeout as pause } from 'node:timers/promises';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import type { Store } from 'holdfast/protocol';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  callsDuring,
  claimOf,
  clientOf,
  type FaultyWorld,
  faultyWorld,
  isTimeCall,
  lockOperationsOf,
  releaseOf,
  renewOf,
  say,
  tableOn,
  warmClients,
} from './store-scene.js';

// Calls are counted from a process that knows nothing yet: other files of this worker have asked for the time.
vi.hoisted(() => vi.resetModules());

/** The guess needs a time later than the last write's, and what two clients take for the time may differ by this. */
const APART_MS = 500;
/** Long enough for a renewal to have something to write. */
const LATER_MS = 50;

describe.runIf(available('dynamodb'))('calls to DynamoDB', () => {
  let world: FaultyWorld;
  let table: string;
  let here: Store;
  let there: Store;
  let clients: readonly DynamoDB[] = [];

  beforeAll(async () => {
    world = await faultyWorld();
    table = await tableOn(world.client());
    clients = await warmClients(clientOf, world.faults.url, 2);
    [here, there] = clients.map((client) => dynamodbStore(client, { table })) as [Store, Store];
  });

  afterAll(async () => {
    for (const client of clients) client.destroy();
    await world?.stop();
  });
  beforeEach(() => world.faults.stripItems(false));

  const during = (work: () => Promise<unknown>): Promise<string[]> => lockOperationsOf(world.faults, work);

  it('an uncontended claim, a renewal and a release are one call each', async () => {
    const claim = claimOf('one', 'anna');
    expect(await during(() => say(here, claim))).toEqual(['UpdateItem']);
    await pause(LATER_MS);
    expect(await during(() => say(here, renewOf(claim)))).toEqual(['UpdateItem']);
    expect(await during(() => say(here, releaseOf(claim)))).toEqual(['UpdateItem']);
  });

  it('a claim of a key that another process released before is one call too', async () => {
    const [before, after] = [claimOf('passed on', 'anna'), claimOf('passed on', 'bert')];
    await say(here, before);
    await say(here, releaseOf(before));
    await pause(APART_MS);
    expect(await during(async () => expect((await say(there, after)).kind).toBe('granted'))).toEqual([
      'UpdateItem',
    ]);
    expect(await during(() => say(there, releaseOf(after)))).toEqual(['UpdateItem']);
    // And back, although what is remembered here is old by now.
    await pause(APART_MS);
    const again = claimOf('passed on', 'anna', { hold: { process: 'anna', number: 2 } });
    expect(await during(async () => expect((await say(here, again)).kind).toBe('granted'))).toEqual([
      'UpdateItem',
    ]);
  });

  it('a busy try is one call: the failed condition brings the item back', async () => {
    await say(here, claimOf('busy', 'anna', { owner: 'Anna' }));
    const calls = await during(async () => {
      const busy = await say(there, claimOf('busy', 'bert'));
      expect(busy).toMatchObject({ kind: 'busy', holders: [{ owner: 'Anna' }] });
    });
    expect(calls).toEqual(['UpdateItem']);
  });

  it('F22: an endpoint that does not send the item back costs one consistent read', async () => {
    await say(here, claimOf('without', 'anna', { owner: 'Anna' }));
    world.faults.stripItems();
    const before = world.faults.calls.length;
    const busy = await say(there, claimOf('without', 'bert'));
    expect(busy).toMatchObject({ kind: 'busy', holders: [{ owner: 'Anna' }] });
    const [write, read, ...more] = world.faults.calls.slice(before);
    expect([write?.operation, read?.operation, more.length]).toEqual(['UpdateItem', 'GetItem', 0]);
    expect(JSON.parse(read?.body ?? '')).toMatchObject({ ConsistentRead: true });
  });

  it('through the whole library: acquire, renew and release, and a try that finds it busy', async () => {
    const sent: string[] = [];
    const [mine, others] = [createLocks(noting(here, sent)), createLocks(noting(there, sent))];
    const calls = await during(async () => {
      const lease = await mine.acquire('order', { renew: false });
      await pause(LATER_MS);
      await lease.renew();
      expect(await others.tryAcquire('order')).toBeNull();
      await lease.release();
    });
    expect(new Set(calls)).toEqual(new Set(['UpdateItem']));
    // A command that a busy machine leaves unanswered for long is sent again, which may be a call more.
    expect(calls.length).toBeLessThanOrEqual(sent.length);
    expect(sent.filter((kind, index) => kind !== sent[index - 1])).toEqual([
      'claim',
      'renew',
      'claim',
      'release',
    ]);
  });

  it('a process that does not know the time asks for it once, whatever number of stores and locks it has', async () => {
    const client = world.client();
    const stores = [dynamodbStore(client, { table }), dynamodbStore(client, { table })] as const;
    const made = await callsDuring(world.faults, async () => {
      await say(stores[0], claimOf('first', 'carl'));
      await say(stores[1], claimOf('second', 'carl'));
    });
    // Without late calls of other tests.
    const calls = made.filter((call) => isTimeCall(call) || call.body.includes('carl'));
    // Where a busy machine took so long that the answer is old, it is asked for again before anything is written.
    const [first, ...writes] = calls.filter((call, index) => !isTimeCall(call) || index === 0);
    expect(first && isTimeCall(first)).toBe(true);
    expect(writes.map(({ operation }) => operation)).toEqual(['UpdateItem', 'UpdateItem']);
    expect(calls.slice(-2)).toEqual(writes);
  });

  it('commands of one key in one batch are one write', async () => {
    const claim = claimOf('batch', 'anna');
    const calls = await during(async () => {
      const replies = await Promise.all(here.apply([claim, renewOf(claim), releaseOf(claim)]));
      expect(replies.map(({ kind }) => kind)).toEqual(['granted', 'renewed', 'released']);
    });
    expect(calls).toEqual(['UpdateItem']);
  });

  it('F24: ten renewals and then a release, one call each', async () => {
    const claim = claimOf('renewed', 'anna');
    await say(here, claim);
    const calls = await during(async () => {
      let last = 0;
      for (let round = 0; round < 10; round++) {
        const reply = await say(here, renewOf({ ...claim, ttlMs: 20_000 + round * 1_000 }));
        if (reply.kind !== 'renewed') throw new Error(`The renewal was answered ${JSON.stringify(reply)}.`);
        expect(reply.expiresAt).toBeGreaterThan(last);
        last = reply.expiresAt;
      }
      expect(await say(here, releaseOf(claim))).toMatchObject({ kind: 'released', held: true });
    });
    expect(calls).toHaveLength(11);
  });
});

/** Notes the kinds of the commands that are sent to the store. */
function noting(store: Store, kinds: string[]): Store {
  return {
    ...store,
    apply(commands) {
      kinds.push(...commands.map(({ kind }) => kind));
      return store.apply(commands);
    },
  };
}
