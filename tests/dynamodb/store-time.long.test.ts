import { setTimeout as pause } from 'node:timers/promises';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks, UnsupportedError } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import type { Claim, Store } from 'holdfast/protocol';
import { available, type HttpFaults, startDynamodb, startHttpFaults } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Child } from '../faults/child.js';
import {
  claimOf,
  clientOf,
  type FaultyWorld,
  faultyWorld,
  itemOf,
  releaseOf,
  say,
  tableOn,
} from './store-scene.js';

const HOUR_MS = 60 * 60 * 1_000;
/** They take 10 s on an idle machine. */
const BUSY_MS_MAX = 90_000;

describe.runIf(available('dynamodb'))('time on DynamoDB', () => {
  let world: FaultyWorld;
  let raw: DynamoDB;
  let table: string;

  beforeAll(async () => {
    world = await faultyWorld();
    raw = world.client();
    table = await tableOn(raw);
  });

  afterAll(() => world?.stop());

  const startTaker = (key: string, clockOffMs: number, hold: boolean, ttlMs = 1_500): Child => {
    const task = { endpoint: world.server.url, table, key, ttlMs, hold };
    const name = `clock off by ${clockOffMs / HOUR_MS} h`;
    return new Child(name, new URL('./taker.js', import.meta.url), [JSON.stringify(task)], clockOffMs);
  };

  it.concurrent.each([HOUR_MS, -HOUR_MS])(
    'F11: a process whose clock is off by %d ms steals no lock',
    async (offMs) => {
      const key = `kept ${offMs}`;
      const locks = createLocks(dynamodbStore(raw, { table }), { ttl: '3s' });
      const lease = await locks.acquire(key);
      const taker = startTaker(key, offMs, false);
      try {
        await taker.said('busy');
        // Through several leases' worth of time.
        await pause(7_000);
        expect(lease.held).toBe(true);
        expect(
          taker.lines.filter((line) => line.startsWith('granted')),
          taker.story,
        ).toEqual([]);
        await lease.release();
        await taker.said('granted', 10_000);
      } finally {
        await taker.finish();
        await locks.close({ drain: 0 });
      }
    },
    BUSY_MS_MAX,
  );

  it.concurrent.each([HOUR_MS, -HOUR_MS])(
    'F11: a holder whose clock is off by %d ms keeps its lock, and no longer',
    async (offMs) => {
      const key = `held ${offMs}`;
      const locks = createLocks(dynamodbStore(raw, { table }));
      const holder = startTaker(key, offMs, true);
      try {
        await holder.said('held');
        for (let round = 0; round < 30; round++) {
          expect(await locks.tryAcquire(key), holder.story).toBeNull();
          await pause(100);
        }
        expect(holder.lines).not.toContain('lost');
        await holder.kill();
        const since = performance.now();
        const lease = await locks.acquire(key, { wait: '20s' });
        expect(lease.held).toBe(true);
        expect(performance.now() - since).toBeLessThan(15_000);
      } finally {
        await holder.kill();
        await locks.close({ drain: 0 });
      }
    },
    BUSY_MS_MAX,
  );

  it.concurrent('F10: the token rises across the deletion by the time to live', async () => {
    // Of its own: the more tables an emulator has, the later it looks into one of them for what may go.
    const own = await startDynamodb({ own: true });
    const client = clientOf(own.url);
    const ownTable = await tableOn(client);
    const store = dynamodbStore(client, { table: ownTable });
    const before = claimOf('deleted', 'anna');
    const granted = await say(store, before);
    await say(store, releaseOf(before));
    await client.updateItem({
      TableName: ownTable,
      Key: { key: { S: 'deleted' } },
      UpdateExpression: 'SET #ttl = :past',
      ExpressionAttributeNames: { '#ttl': 'ttl' },
      ExpressionAttributeValues: { ':past': { N: String(Math.floor(Date.now() / 1_000) - 60) } },
    });
    const until = performance.now() + 60_000;
    while ((await itemOf(client, ownTable, 'deleted')) && performance.now() < until) await pause(100);
    expect(await itemOf(client, ownTable, 'deleted')).toBeUndefined();
    const again = await say(store, claimOf('deleted', 'bert'));
    if (granted.kind !== 'granted' || again.kind !== 'granted') throw new Error('It was not granted twice.');
    expect(again.token).toBeGreaterThan(granted.tokenLast);
    client.destroy();
    await own.stop();
  }, 90_000);

  it('an endpoint that tells no time is refused, in words', async () => {
    const silent = await startHttpFaults(world.server);
    silent.rewriteDate(() => undefined);
    const client = clientOf(silent.url);
    try {
      const [refused] = dynamodbStore(client, { table }).apply([claimOf('timeless', 'anna')]);
      await expect(refused).rejects.toThrow(UnsupportedError);
      await expect(refused).rejects.toThrow(/no Date header/);
    } finally {
      client.destroy();
      await silent.stop();
    }
  });

  describe('two clients whose time errs in opposite directions', () => {
    const ERROR_MS = 20;
    let early: HttpFaults;
    let late: HttpFaults;

    /** A server whose clock is off by so much: the header cuts the rest of its second off, as ever. */
    const off = async (ms: number): Promise<HttpFaults> => {
      const faults = await startHttpFaults(world.server);
      faults.rewriteDate(() => new Date(Date.now() + ms).toUTCString());
      return faults;
    };

    beforeAll(async () => {
      [early, late] = await Promise.all([off(-ERROR_MS), off(ERROR_MS)]);
    });

    afterAll(async () => {
      await Promise.all([early?.stop(), late?.stop()]);
    });

    /** How long after the end of the holder's lease, as the holder counts it, the taker was granted. */
    async function marginOf(holder: Store, taker: Store, claim: Claim): Promise<number> {
      const sentMs = performance.now();
      const granted = await say(holder, claim);
      if (granted.kind !== 'granted') throw new Error(`It was answered ${JSON.stringify(granted)}.`);
      const endsMs = sentMs + granted.expiresAt - granted.now;
      const other = claimOf(claim.key, 'taker');
      for (let tries = 0; tries < 2_000; tries++) {
        if ((await say(taker, other)).kind === 'granted') return performance.now() - endsMs;
        await pause(3);
      }
      throw new Error('It was never granted.');
    }

    it('do not overlap when both know the time as well as can be', async () => {
      const clients = [clientOf(early.url), clientOf(late.url)] as const;
      const [behind, ahead] = clients.map((client) => dynamodbStore(client, { table })) as [Store, Store];
      const until = performance.now() + 2_200;
      while (performance.now() < until) {
        await Promise.all([behind.read('nobody'), ahead.read('nobody')]);
        await pause(5);
      }
      for (let round = 0; round < 4; round++) {
        const claim = claimOf(`opposite ${round}`, 'holder', { ttlMs: 200 });
        const [holder, taker] = round % 2 === 0 ? [behind, ahead] : [ahead, behind];
        expect(await marginOf(holder, taker, claim), `round ${round}`).toBeGreaterThanOrEqual(0);
      }
      for (const client of clients) client.destroy();
    });

    it('do not overlap when the holder has heard one reply only, at the worst moment of a second', async () => {
      for (let round = 0; round < 3; round++) {
        const clients = [clientOf(early.url), clientOf(late.url)] as const;
        const [holder, taker] = clients.map((client) => dynamodbStore(client, { table })) as [Store, Store];
        // The holder hears of a second that is nearly over: its latest is hardly later than the time.
        await pause((1_930 - (Date.now() % 1_000)) % 1_000);
        const margin = marginOf(holder, taker, claimOf(`cold ${round}`, 'holder', { ttlMs: 300 }));
        expect(await margin, `round ${round}`).toBeGreaterThanOrEqual(0);
        for (const client of clients) client.destroy();
      }
    });
  });

  it('F11: a machine that stood still with both clocks learns the time from the reply that grants, before it believes it', async () => {
    const faults = await startHttpFaults(world.server);
    let behindMs = 0;
    faults.rewriteDate((date) => new Date(date.getTime() + behindMs).toUTCString());
    const [paused, other] = [clientOf(faults.url), clientOf(faults.url)];
    const stores = [paused, other].map((client) => createLocks(dynamodbStore(client, { table })));
    const [first, second] = stores;
    try {
      for (let rounds = 0; rounds < 25; rounds++) {
        await (await first?.acquire('warm'))?.release();
        await pause(50);
      }
      behindMs = 60_000;
      const lease = await first?.acquire('stood still', { ttl: '30s' });
      expect(lease?.held).toBe(true);
      expect(await second?.tryAcquire('stood still'), 'taken from one who holds').toBeNull();
    } finally {
      await Promise.all(stores.map((locks) => locks.close({ drain: 0 })));
      paused.destroy();
      other.destroy();
      await faults.stop();
    }
  });
});
