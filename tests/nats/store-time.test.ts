/** Time is the server's, as well as a client can know it: no client's clock takes anybody's lock. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { natsStore } from 'holdfast/nats';
import type { Reply, Store } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { claimOf, connectTo, recordOf, releaseOf, say, tapped } from './store-scene.js';

const HOUR_MS = 3_600_000;

/** The wall clock of this process, from now on. It goes on as clocks do. */
function setClock(offMs: number): void {
  const right = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => right() + offMs);
}

describe.runIf(available('nats'))('time on NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
  });

  afterAll(async () => {
    vi.restoreAllMocks();
    await connection?.close();
    await server?.stop();
  });

  it.each([HOUR_MS, -HOUR_MS])(
    "F11: a client whose clock is off by %i ms takes nobody's lock, and its own is not taken",
    async (offMs) => {
      const right = natsStore(connection);
      const [theirs, ours] = [`theirs ${offMs}`, `ours ${offMs}`];
      const claim = claimOf(theirs, 'right', { ttlMs: 2_000 });
      await say(right, claim);
      const trueNow = Date.now();
      setClock(offMs);
      try {
        const wrong = natsStore(connection);
        const busy = await say(wrong, claimOf(theirs, 'wrong', { queue: false }));
        expect(busy.kind).toBe('busy');
        const granted = await say(wrong, claimOf(ours, 'wrong', { ttlMs: 2_000 }));
        if (granted.kind !== 'granted') throw new Error(granted.kind);
        expect(Math.abs(granted.now - trueNow)).toBeLessThan(60_000);
        expect(granted.expiresAt - granted.now).toBe(2_000);
        expect(Math.abs((await wrong.probe()).now - trueNow)).toBeLessThan(60_000);
        await wrong.close();
      } finally {
        vi.restoreAllMocks();
      }
      expect((await say(right, claimOf(ours, 'right', { queue: false }))).kind).toBe('busy');
      await sleep(2_200);
      // Nor does it hold on to anything.
      expect((await say(right, claimOf(ours, 'right', { queue: false }))).kind).toBe('granted');
      await right.close();
    },
  );

  it('a clock that is set while a store is in use changes nothing either', async () => {
    const store = natsStore(connection);
    const trueNow = Date.now();
    await say(store, claimOf('set', 'holder', { ttlMs: 60_000 }));
    for (const offMs of [HOUR_MS, -HOUR_MS]) {
      setClock(offMs);
      try {
        const busy = await say(store, claimOf('set', 'other', { queue: false }));
        expect(busy.kind).toBe('busy');
        expect(Math.abs(busy.now - trueNow)).toBeLessThan(60_000);
      } finally {
        vi.restoreAllMocks();
      }
    }
    await store.close();
  });

  it('a hold ends its ttl after the stamp of its record, though its writer was slow to send it', async () => {
    const tap = tapped(connection);
    const slow = natsStore(tap.connection);
    await say(slow, claimOf('warm', 'slow'));
    tap.before = async (subject) => {
      if (subject === '$KV.holdfast.slow') await sleep(600);
    };
    const claim = claimOf('slow', 'slow', { ttlMs: 700 });
    const granted = await say(slow, claim);
    if (granted.kind !== 'granted') throw new Error(granted.kind);
    const storedAt = (await recordOf(connection, 'slow'))?.storedAt ?? 0;
    expect(storedAt - granted.now).toBeGreaterThan(500);
    const taker = natsStore(connection);
    const next = claimOf('slow', 'taker', { queue: false });
    let reply: Reply = await say(taker, next);
    while (reply.kind === 'busy') {
      await sleep(5);
      reply = await say(taker, next);
    }
    // The latest it may be when it was taken over is after the end by the stamp.
    expect(reply.now).toBeGreaterThanOrEqual(storedAt + 700);
    await Promise.all([slow.close(), taker.close()]);
  });

  it('two clients whose estimates err in opposite directions never hold at once', {
    timeout: 60_000,
  }, async () => {
    const LAG_MS = 60;
    const TTL_MS = 700;
    // One hears of the time late, so it takes it for earlier; the other's questions travel slowly.
    const [hearsLate, asksLate] = [tapped(connection), tapped(connection)];
    hearsLate.after = () => sleep(LAG_MS);
    asksLate.before = () => sleep(LAG_MS);
    const stores = [natsStore(hearsLate.connection), natsStore(asksLate.connection)];
    let validUntilMs = Number.NEGATIVE_INFINITY;
    let grants = 0;
    const overlaps: string[] = [];
    const contend = async (store: Store, who: string): Promise<void> => {
      for (let number = 1; number <= 6; number++) {
        const claim = claimOf('opposite', who, {
          ttlMs: TTL_MS,
          queue: false,
          hold: { process: who, number },
        });
        for (let tries = 0; tries < 200; tries++) {
          const sentMs = performance.now();
          const reply = await say(store, claim);
          if (reply.kind === 'busy') continue;
          if (reply.kind !== 'granted') break;
          const untilMs = sentMs + (reply.expiresAt - reply.now) * 0.99 - 5;
          const heardMs = performance.now();
          // Over before it was heard of: nobody would count on it.
          if (untilMs <= heardMs) break;
          if (heardMs < validUntilMs) overlaps.push(`${who} ${number}: ${validUntilMs - heardMs} ms early`);
          validUntilMs = untilMs;
          grants += 1;
          break;
        }
      }
    };
    await Promise.all(stores.map((store, index) => contend(store, `process ${index}`)));
    expect(overlaps).toEqual([]);
    expect(grants).toBeGreaterThanOrEqual(6);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('F22: a lock that its process left ends by its ttl, on servers that ignore the TTLs of keys too', async () => {
    const leaving = natsStore(connection);
    await say(leaving, claimOf('left', 'gone', { ttlMs: 3_000 }));
    await leaving.close();
    const store = natsStore(connection);
    const claim = claimOf('left', 'next', { queue: false });
    expect((await say(store, claim)).kind).toBe('busy');
    await sleep(3_200);
    expect((await say(store, claim)).kind).toBe('granted');
    expect((await say(store, releaseOf(claim))).kind).toBe('released');
    await store.close();
  });
});
