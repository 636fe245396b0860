/** Time is the server's, and waiting costs next to nothing. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { redisStore } from 'holdfast/redis';
import { available, type RedisServer, startProxy, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { callsOf, claimOf, say } from './store-scene.js';

const HOUR_MS = 3_600_000;

describe.runIf(available('redis'))('time and waiting', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis({ own: true });
    client = new Redis(server.url);
  });

  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });

  it.each([HOUR_MS, -HOUR_MS])('P17: a client whose clock is off by %i ms changes nothing', async (offMs) => {
    const store = redisStore(client);
    const key = `clock ${offMs}`;
    const wants = { permits: 1, capacity: 2, ttlMs: 60_000, queue: false };
    await say(store, claimOf(key, 'right', wants));
    const right = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: right + offMs });
    try {
      const granted = await say(store, claimOf(key, 'wrong', wants));
      if (granted.kind !== 'granted') throw new Error(granted.kind);
      expect(Math.abs(granted.now - right)).toBeLessThan(60_000);
      expect(granted.expiresAt - granted.now).toBe(60_000);
      // Both permits are taken, whatever the clock of the third says.
      const third = await say(store, claimOf(key, 'third', wants));
      expect(third.kind === 'busy' && third.holders.map(({ owner }) => owner)).toEqual(['right', 'wrong']);
      expect((await store.probe()).now - right).toBeLessThan(60_000);
    } finally {
      vi.useRealTimers();
    }
    expect(await client.pttl(`holdfast:${key}`)).toBeGreaterThan(60_000);
  });

  it('P19: one waiter sends a few commands a second, and a thousand in a process no more than one', async () => {
    const holder = createLocks(redisStore(client));
    const other = new Redis(server.url);
    const waiting = createLocks(redisStore(other));
    const held = await holder.acquire('k', { ttl: 60_000 });
    const gaveUp = new AbortController();
    const wait = async (): Promise<string> => {
      try {
        await waiting.acquire('k', { wait: 60_000, signal: gaveUp.signal });
        return 'acquired';
      } catch (error) {
        return error === gaveUp.signal.reason ? 'gave up' : String(error);
      }
    };
    const waiters = [wait()];
    const perSecond = async (): Promise<number> => {
      await sleep(500);
      await client.config('RESETSTAT');
      await sleep(3_000);
      return ((await callsOf(client, 'evalsha')) + (await callsOf(client, 'eval'))) / 3;
    };
    const alone = await perSecond();
    expect(alone).toBeGreaterThan(0);
    expect(alone).toBeLessThanOrEqual(4);
    while (waiters.length < 1_000) waiters.push(wait());
    expect(await perSecond()).toBeLessThanOrEqual(4);
    gaveUp.abort(new Error('enough'));
    expect(new Set(await Promise.all(waiters))).toEqual(new Set(['gave up']));
    await held.release();
    await Promise.all([holder.close({ drain: 0 }), waiting.close({ drain: 0 })]);
    other.disconnect();
  });

  it('F32: with the subscription cut off for good, waiters still proceed, in order', async () => {
    const holder = createLocks(redisStore(client));
    const held = await holder.acquire('deaf', { ttl: 60_000 });
    const others = await Promise.all(
      ['first', 'second'].map(async (name) => {
        const own = new Redis(server.url, { connectionName: name });
        const subscriber = new Redis(server.url);
        const locks = createLocks(redisStore(own, { subscriber }));
        await locks.withLock(`warm ${name}`, () => undefined);
        return { name, own, subscriber, locks };
      }),
    );
    const order: string[] = [];
    const turns: Promise<unknown>[] = [];
    for (const { name, subscriber, locks } of others) {
      turns.push(locks.withLock('deaf', () => order.push(name), { wait: 30_000 }));
      await sleep(100);
      subscriber.disconnect();
    }
    await held.release();
    await Promise.all(turns);
    expect(order).toEqual(['first', 'second']);
    for (const { own, locks } of others) {
      await locks.close({ drain: 0 });
      own.disconnect();
    }
    await holder.close();
  });

  it('a lost subscription is made again, and the store says when no wake-ups arrive', async () => {
    const store = redisStore(client);
    const heard: string[] = [];
    const hearing: boolean[] = [];
    await store.listen?.(
      'again',
      (key) => heard.push(key),
      (now) => hearing.push(now),
    );
    const listening = async (): Promise<unknown> => client.call('PUBSUB', 'NUMSUB', 'holdfast:inbox:again');
    expect(await listening()).toEqual(['holdfast:inbox:again', 1]);
    for (let round = 1; round <= 3; round++) {
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await expect.poll(listening).toEqual(['holdfast:inbox:again', 1]);
    }
    await say(store, claimOf('again', 'a', { inbox: 'again' }));
    await say(store, claimOf('again', 'b'));
    await expect.poll(() => heard).toContain('again');
    expect(hearing).toContain(false);
    expect(hearing.at(-1)).toBe(true);
    await store.close();
  });

  it('F8: closed at any moment of coming back, it leaves no rejection that nobody takes', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    const proxy = await startProxy({ host: server.host, port: server.port });
    const slow = new Redis({ host: proxy.host, port: proxy.port });
    process.on('unhandledRejection', note);
    try {
      proxy.delay(20);
      const closing = Array.from({ length: 24 }, async (_, round) => {
        const store = redisStore(slow);
        await store.listen?.(`closing ${round}`, () => undefined);
        return async () => {
          await sleep(50 + round * 15);
          await store.close();
        };
      });
      const closes = await Promise.all(closing);
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await Promise.all(closes.map((close) => close()));
      await sleep(300);
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
      slow.disconnect();
      await proxy.stop();
    }
  });
});
