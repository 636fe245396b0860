/** What the store keeps in Redis, for how long, and what it does with what is not its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, UnsupportedError } from 'holdfast';
import { EVICTION_MS, type Store } from 'holdfast/protocol';
import { redisStore } from 'holdfast/redis';
import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isLongRun } from '../long-run.js';
import { claimOf, releaseOf, say } from './store-scene.js';

/** Released records are kept for 30 s, held ones for their ttl more. */
const KEPT_MS_MAX = 31_000;

describe.runIf(available('redis'))('what is stored in Redis', () => {
  let server: RedisServer;
  let client: Redis;
  let store: Store;

  beforeAll(async () => {
    server = await startRedis({ own: true });
    client = new Redis(server.url);
  });

  beforeEach(async () => {
    await client.flushall();
    store = redisStore(client);
  });

  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });

  it('P12: 10,000 locks used once leave only records that go by themselves, of about a hundred bytes', async () => {
    const locks = createLocks(store);
    for (let from = 0; from < 10_000; from += 500) {
      const names = Array.from({ length: 500 }, (_, index) => `once:${from + index}`);
      await Promise.all(names.map((name) => locks.withLock(name, () => undefined)));
    }
    const keys = await client.keys('*');
    expect(keys).toHaveLength(10_000);
    const pipeline = client.pipeline();
    for (const key of keys) pipeline.pttl(key).strlen(key);
    const results = ((await pipeline.exec()) ?? []).map(([, value]) => Number(value));
    const ttls = results.filter((_, index) => index % 2 === 0);
    const bytes = results.filter((_, index) => index % 2 === 1);
    expect(Math.min(...ttls)).toBeGreaterThan(0);
    expect(Math.max(...ttls)).toBeLessThanOrEqual(KEPT_MS_MAX);
    expect(Math.max(...bytes)).toBeLessThan(120);
    await locks.close({ drain: 0 });
  });

  it.runIf(isLongRun)(
    'P12: after a while there are as many keys as before',
    { timeout: 90_000 },
    async () => {
      const locks = createLocks(redisStore(client, { prefix: 'gone:' }));
      const names = Array.from({ length: 100 }, (_, index) => `${index}`);
      await Promise.all(names.map((name) => locks.withLock(name, () => undefined)));
      const held = claimOf('held', 'crashed', { ttlMs: 500 });
      await say(redisStore(client, { prefix: 'gone:' }), held);
      expect(await client.dbsize()).toBe(101);
      await sleep(KEPT_MS_MAX + 2_000);
      // A key whose time has come is deleted when somebody looks.
      expect(await client.keys('gone:*')).toEqual([]);
      await locks.close({ drain: 0 });
    },
  );

  it('P13: nothing but one key a lock is stored, so no name meets one of ours', async () => {
    const names = ['a', 'a:fence', 'a:queue', 'inbox:a', 'holdfast:a', 'a:token', '{a}', 'fence:a', ''];
    const claims = names.map((name, index) => claimOf(name, `p${index}`));
    const replies = await Promise.all(store.apply(claims));
    expect(replies.map(({ kind }) => kind)).toEqual(names.map(() => 'granted'));
    await Promise.all(store.apply(names.map((name) => claimOf(name, 'waits', { inbox: 'somewhere' }))));
    expect((await client.keys('*')).sort()).toEqual(names.map((name) => `holdfast:${name}`).sort());
  });

  it("what else lies under the prefix is refused by itself and left alone; the batch's others go on", async () => {
    const foreign: Record<string, string> = { text: 'hello', number: '104', empty: '', short: '\u00c1' };
    for (const [name, value] of Object.entries(foreign)) await client.set(`holdfast:${name}`, value);
    await client.hset('holdfast:hash', 'a', 'b');
    await client.set('holdfast:cut', Buffer.from([0xc1, 1, 0]));
    const strange = [...Object.keys(foreign), 'hash', 'cut'];
    const names = ['before', ...strange, 'after'];
    const results = await Promise.allSettled(store.apply(names.map((name) => claimOf(name, 'p'))));
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      ...strange.map(() => 'rejected'),
      'fulfilled',
    ]);
    for (const [index, name] of strange.entries()) {
      const result = results[index + 1];
      const reason: unknown = result?.status === 'rejected' ? result.reason : null;
      expect(reason, name).toBeInstanceOf(UnsupportedError);
      expect(String(reason), name).toContain(`"holdfast:${name}" is not a lock of Holdfast`);
    }
    expect(await client.get('holdfast:text')).toBe('hello');
    expect(await client.hgetall('holdfast:hash')).toEqual({ a: 'b' });
    const listed: string[] = [];
    for await (const { key } of store.list({ prefix: '' })) listed.push(key);
    expect(listed).toEqual(['after', 'before']);
  });

  it.each([
    ['lists', "cmsgpack.pack({ 2, 'x' })"],
    ['a short record', "string.char(0xc1, 2) .. 'of tomorrow'"],
  ])('a record of a newer format, %s, is left exactly as it is', async (_shape, lua) => {
    await client.eval(`return redis.call('SET', KEYS[1], ${lua}, 'PX', 5000)`, 1, 'holdfast:k');
    const before = await client.getBuffer('holdfast:k');
    const claim = claimOf('k', 'p');
    for (const command of [claim, releaseOf(claim), { kind: 'evict', key: 'k', upToToken: 1 } as const]) {
      await expect(say(store, command)).rejects.toThrow(/format 2, .*upgrade this one/s);
    }
    await expect(store.read('k')).rejects.toBeInstanceOf(UnsupportedError);
    expect(await client.getBuffer('holdfast:k')).toEqual(before);
    expect(await client.pttl('holdfast:k')).toBeLessThanOrEqual(5_000);
  });

  it('marks are the last 128 of as many processes, taken quickly or the long way', async () => {
    const inTurn = async (process: string, number: number): Promise<void> => {
      const claim = claimOf('k', process, { hold: { process, number } });
      await Promise.all(store.apply([claim, releaseOf(claim)]));
    };
    for (let index = 0; index < 140; index++) await inTurn(`${index}`, 1);
    const late = (index: number) => say(store, claimOf('k', `${index}`, { queue: false }));
    expect((await late(139)).kind).toBe('withdrawn');
    expect((await late(12)).kind).toBe('withdrawn');
    // Forgotten, as the first of more than 128.
    expect((await late(11)).kind).toBe('granted');
  });

  it('an eviction is kept for ten minutes, however long the evicted hold would have lived', async () => {
    const claim = claimOf('k', 'a', { ttlMs: 3_600_000 });
    await say(store, claim);
    await say(store, { kind: 'evict', key: 'k', upToToken: Number.MAX_SAFE_INTEGER, reason: 'retired' });
    expect(await client.pttl('holdfast:k')).toBeLessThanOrEqual(EVICTION_MS);
    expect(await client.pttl('holdfast:k')).toBeGreaterThan(EVICTION_MS - 60_000);
    const renewal = { kind: 'renew', key: 'k', hold: claim.hold, ttlMs: 1_000, block: false } as const;
    expect(await say(store, renewal)).toMatchObject({ kind: 'lost', evicted: { reason: 'retired' } });
  });

  it('tokens of sixteen digits are the same to the last one in replies, views and records of every shape', async () => {
    const first = await say(store, claimOf('k', 'a'));
    if (first.kind !== 'granted') throw new Error(first.kind);
    expect(String(first.token)).toHaveLength(16);
    expect(first.token).toBe(first.acquiredAt * 1_000);
    expect(first.tokenLast).toBe(first.token + 1_023);
    expect((await store.read('k'))?.token).toBe(first.tokenLast);
    // With somebody in the queue the record has its other shape.
    const busy = await say(store, claimOf('k', 'b'));
    expect(busy.kind === 'busy' && busy.holders[0]?.token).toBe(first.token);
    expect(await say(store, claimOf('k', 'a'))).toMatchObject({
      token: first.token,
      tokenLast: first.tokenLast,
    });
    const renewed = await say(store, {
      kind: 'renew',
      key: 'k',
      hold: { process: 'a', number: 1 },
      ttlMs: 20_000,
      block: true,
    });
    if (renewed.kind !== 'renewed' || !renewed.block) throw new Error(renewed.kind);
    expect(renewed.block.token).toBeGreaterThan(first.tokenLast);
    const view = await store.read('k');
    expect([view?.token, view?.holders[0]?.token]).toEqual([renewed.block.tokenLast, first.token]);
    expect(renewed.decision).toBe(busy.decision + Math.max(1, renewed.now * 1_000 - busy.decision));
  });

  it('F10: a token is above all before it though the record was deleted', async () => {
    const claim = claimOf('k', 'a');
    const first = await say(store, claim);
    await client.del('holdfast:k');
    // A token follows the clock, a thousand a millisecond, and a grant reserves the next 1,024.
    await new Promise((resolve) => setTimeout(resolve, 10));
    const second = await say(store, { ...claim, hold: { process: 'b', number: 1 } });
    if (first.kind !== 'granted' || second.kind !== 'granted') throw new Error('not granted');
    expect(second.token).toBeGreaterThan(first.tokenLast);
  });

  it('owners and metadata of any letters come back as they were', async () => {
    const owner = 'line\nbreak, "quotes", \u00e9\u{1f600}, 12 blanks  ';
    const metadata = JSON.stringify({ text: 'C 1 1 1; \u{1f600}\n', long: 'x'.repeat(4_000) });
    await say(store, claimOf('k', 'a', { owner, metadata, hold: { process: 'p 1 2\n', number: 1 } }));
    expect((await store.read('k'))?.holders[0]).toMatchObject({ owner, metadata });
    const busy = await say(store, claimOf('k', 'b'));
    expect(busy.kind === 'busy' && busy.holders[0]).toMatchObject({ owner, metadata });
  });

  it('a flushed script is sent again in the middle of use, and nobody notices', async () => {
    const claim = claimOf('k', 'a');
    await say(store, claim);
    await client.script('FLUSH');
    expect(await say(store, { ...releaseOf(claim) })).toMatchObject({ kind: 'released', held: true });
    await client.script('FLUSH');
    // All at once, more than one call has: a key's commands stay in order.
    const commands = Array.from({ length: 300 }, (_, index) => {
      const own = claimOf(`many:${index % 150}`, 'a');
      return index < 150 ? own : releaseOf(own);
    });
    const replies = await Promise.all(store.apply(commands));
    expect(replies.slice(0, 150).every(({ kind }) => kind === 'granted')).toBe(true);
    expect(replies.slice(150).every((reply) => reply.kind === 'released' && reply.held)).toBe(true);
  });

  it('a closed store refuses commands and leaves the client open', async () => {
    await store.close();
    await store.close();
    await expect(say(store, claimOf('k', 'a'))).rejects.toThrow('This Redis store is closed.');
    await expect(store.read('k')).rejects.toBeInstanceOf(UnsupportedError);
    await expect(store.listen?.('inbox', () => undefined)).rejects.toBeInstanceOf(UnsupportedError);
    expect(await client.ping()).toBe('PONG');
  });
});
