/** Every client that is taken, with the settings that could confuse a store, and those that are not taken. */
import { Socket } from 'node:net';
import { createLocks, InvalidArgumentError, UnsupportedError } from 'holdfast';
import { type RedisClient, redisStore } from 'holdfast/redis';
import {
  available,
  type RedisServer,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from 'holdfast-test-servers';
import { Cluster, Redis } from 'ioredis';
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import { createClient, createClientPool, RESP_TYPES } from 'redis';
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  claimOf,
  type Opened,
  openIoredisCluster,
  openNodeRedis,
  openNodeRedisCluster,
  openNodeRedisSentinel,
  releaseOf,
  say,
} from './store-scene.js';

/** One holds, one waits, and is woken: commands, views and hints together. */
async function tryAll(client: RedisClient, key: string): Promise<void> {
  const store = redisStore(client);
  const other = redisStore(client);
  try {
    const heard: string[] = [];
    await other.listen?.('waits', (about, why) => heard.push(`${why} ${about}`));
    const claim = claimOf(key, 'a', { metadata: '{"n":1}' });
    const granted = await say(store, claim);
    const waiting = claimOf(key, 'b', { inbox: 'waits' });
    const busy = await say(other, waiting);
    expect([granted.kind, busy.kind]).toEqual(['granted', 'busy']);
    expect(busy.kind === 'busy' && busy.holders[0]).toMatchObject({
      owner: 'a',
      metadata: '{"n":1}',
      resting: false,
    });
    expect((await store.read(key))?.waiters).toMatchObject([{ owner: 'b', woken: false }]);
    const listed = [];
    for await (const view of store.list({ prefix: key })) listed.push(view.key);
    expect(listed).toEqual([key]);
    await say(store, releaseOf(claim));
    await expect.poll(() => heard).toEqual([`turn ${key}`]);
    expect((await say(other, waiting)).kind).toBe('granted');
    expect((await other.probe()).findings.length).toBeGreaterThan(0);
    expect((await say(other, releaseOf(waiting))).kind).toBe('released');
  } finally {
    await Promise.all([store.close(), other.close()]);
  }
}

describe.runIf(available('redis'))('clients of one server', () => {
  let server: RedisServer;
  let plain: Redis;

  beforeAll(async () => {
    server = await startRedis({ own: true });
    plain = new Redis(server.url);
  });

  afterAll(async () => {
    plain?.disconnect();
    await server?.stop();
  });

  const IOREDIS = {
    'key prefix': { keyPrefix: 'app:' },
    'numbers as text': { stringNumbers: true },
    'RESP 2': { protocol: 2 },
    'automatic pipelining': { enableAutoPipelining: true },
    'no offline queue, connected first': { enableOfflineQueue: false },
    'a lazy connection': { lazyConnect: true },
    'few retries': { maxRetriesPerRequest: 0, autoResubscribe: false, autoResendUnfulfilledCommands: false },
  } as const;

  it.each(Object.entries(IOREDIS))('ioredis with %s', async (name, options) => {
    const client = new Redis(server.url, options);
    try {
      if (!('lazyConnect' in options)) await expect.poll(() => client.status).toBe('ready');
      await tryAll(client, `ioredis ${name}`);
    } finally {
      client.disconnect();
    }
  });

  it('a key prefix of the client comes before ours, and only there', async () => {
    await plain.flushall();
    const ioredis = new Redis(server.url, { keyPrefix: 'app:' });
    const nodeRedis = createClient({ url: server.url, keyPrefix: 'app:' });
    await nodeRedis.connect();
    try {
      expect((await say(redisStore(ioredis), claimOf('k', 'a'))).kind).toBe('granted');
      expect((await say(redisStore(nodeRedis), claimOf('k', 'b'))).kind).toBe('busy');
      expect(await plain.keys('*')).toEqual(['app:holdfast:k']);
      await tryAll(nodeRedis, 'node-redis with key prefix');
    } finally {
      ioredis.disconnect();
      nodeRedis.destroy();
    }
  });

  it('node-redis with RESP 2, with buffers for texts, and with texts for numbers', async () => {
    const client = createClient({ url: server.url, RESP: 2 });
    await client.connect();
    try {
      await tryAll(client, 'RESP 2');
      const mapping = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String };
      await tryAll(client.withTypeMapping(mapping), 'mapped');
    } finally {
      client.destroy();
    }
  });

  it('node-redis 4, which has no destroy', async () => {
    const client = createClient4({ url: server.url });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await tryAll(client, 'node-redis 4');
    } finally {
      await client.disconnect();
    }
    const before = createClient4({ url: server.url });
    await expect(say(redisStore(before), claimOf('k', 'a'))).rejects.toThrow(UnsupportedError);
  });

  it('node-redis 4 in legacy mode is refused; its duplicate without legacy mode is taken, also to listen', async () => {
    const legacy = createClient4({ url: server.url, legacyMode: true });
    legacy.on('error', () => undefined);
    const remedy = /legacyMode.*client\.duplicate\(\{ legacyMode: false \}\)/;
    expect(() => redisStore(legacy)).toThrow(InvalidArgumentError);
    expect(() => redisStore(legacy)).toThrow(remedy);
    expect(() => redisStore(plain, { subscriber: legacy })).toThrow(remedy);
    const client = legacy.duplicate({ legacyMode: false });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await tryAll(client, 'not in legacy mode');
    } finally {
      await client.disconnect();
    }
  });

  it("iovalkey, Valkey's fork of ioredis", async () => {
    const client = new Valkey(server.url, { keyPrefix: 'valkey:' });
    try {
      await tryAll(client, 'iovalkey');
      expect(await plain.exists('valkey:holdfast:iovalkey')).toBe(1);
    } finally {
      client.disconnect();
    }
  });

  it('the connection for wake-ups sends keep-alives within a minute, whatever the client does', async () => {
    const client = new Valkey(server.url, { keepAlive: 0 });
    await client.ping();
    const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
    onTestFinished(() => keepAlive.mockRestore());
    const store = redisStore(client);
    await store.listen?.('inbox', () => undefined);
    const delays = keepAlive.mock.calls.map(([isOn, delayMs = 0]) => (isOn ? delayMs : 0));
    expect(delays).toHaveLength(1);
    expect(Math.min(...delays)).toBeGreaterThan(0);
    expect(Math.max(...delays)).toBeLessThanOrEqual(60_000);
    await store.close();
    client.disconnect();
  });

  it('a node-redis client that was never connected is refused at once, with the remedy', async () => {
    const client = createClient({ url: server.url });
    const locks = createLocks(redisStore(client));
    await expect(locks.acquire('k')).rejects.toThrow(/not connected.*await client\.connect\(\)/);
    await expect(locks.acquire('k')).rejects.toBeInstanceOf(UnsupportedError);
    await locks.close({ drain: 0 });
  });

  it.each([
    ['nothing', undefined],
    ['a URL', 'redis://localhost'],
    ['an empty object', {}],
    ['a pipeline', () => new Redis({ lazyConnect: true }).pipeline()],
    ['a pool', () => createClientPool({})],
  ])('%s is no client', (_name, made) => {
    const client = typeof made === 'function' ? made() : made;
    expect(() => redisStore(client as never)).toThrow(InvalidArgumentError);
    expect(() => redisStore(client as never)).toThrow(/Redis or Cluster of ioredis/);
  });

  it('options are checked', () => {
    expect(() => redisStore(plain, { prefx: 'a' } as never)).toThrow(/no option "prefx"/);
    expect(() => redisStore(plain, { prefix: '' })).toThrow(InvalidArgumentError);
    expect(() => redisStore(plain, { subscriber: {} as never })).toThrow(
      /The subscriber is not a Redis client/,
    );
  });

  it('an ioredis client that was closed is refused at once', async () => {
    const gone = new Redis(server.url);
    await gone.quit();
    await expect.poll(() => gone.status).toBe('end');
    await expect(say(redisStore(gone), claimOf('gone', 'a'))).rejects.toThrow(UnsupportedError);
  });

  it('a client cannot be its own subscriber', async () => {
    const both = new Redis(server.url, { lazyConnect: true });
    expect(() => redisStore(both, { subscriber: both })).toThrow(/another client/);
    both.disconnect();
  });

  it('a subscriber of the user is used instead of one of ours, and goes on afterwards', async () => {
    for (const subscriber of [new Redis(server.url), (await openNodeRedis(server)).client]) {
      const before = Number(/connected_clients:(\d+)/.exec(await plain.info('clients'))?.[1]);
      const store = redisStore(plain, { subscriber });
      const heard: string[] = [];
      await store.listen?.('mine', (key) => heard.push(key));
      const claim = claimOf('subscribed', 'a', { inbox: 'mine' });
      await say(store, claim);
      await say(store, claimOf('subscribed', 'b'));
      await expect.poll(() => heard).toEqual(['subscribed']);
      expect(Number(/connected_clients:(\d+)/.exec(await plain.info('clients'))?.[1])).toBeLessThanOrEqual(
        before,
      );
      await store.close();
      await expect.poll(() => plain.call('PUBSUB', 'CHANNELS', 'holdfast:*')).toEqual([]);
      if ('isOpen' in subscriber) {
        await subscriber.subscribe('still there', () => undefined);
        await subscriber.destroy?.();
      } else {
        await subscriber.subscribe('still there');
        subscriber.disconnect();
      }
      await plain.del('holdfast:subscribed');
    }
  });

  it('one connection listens for all inboxes of a store, and ends with it', async () => {
    const store = redisStore(plain);
    const count = async (): Promise<number> =>
      Number(/connected_clients:(\d+)/.exec(await plain.info('clients'))?.[1]);
    const before = await count();
    const stops = await Promise.all(
      ['a', 'b', 'c', 'a'].map((inbox) => store.listen?.(inbox, () => undefined)),
    );
    expect(await count()).toBe(before + 1);
    await stops[0]?.();
    expect(await plain.call('PUBSUB', 'NUMSUB', 'holdfast:inbox:a')).toEqual(['holdfast:inbox:a', 1]);
    await store.close();
    await expect.poll(count).toBe(before);
  });

  it('listen rejects where nobody can be reached, and works later', async () => {
    const lost = await startRedis({ own: true });
    const client = new Redis(lost.url, { retryStrategy: () => 50 });
    client.on('error', () => undefined);
    const store = redisStore(client);
    try {
      await client.ping();
      await lost.kill();
      await expect(store.listen?.('inbox', () => undefined)).rejects.toThrow();
      await lost.restart();
      await expect.poll(() => store.listen?.('inbox', () => undefined).then(() => 'heard')).toBe('heard');
    } finally {
      await store.close();
      client.disconnect();
      await lost.stop();
    }
  });

  it('who may not publish still locks, and is told', async () => {
    await plain.acl('SETUSER', 'quiet', 'on', '>secret', '~holdfast:*', '+@all', '-publish', 'resetchannels');
    const client = new Redis(server.url, { username: 'quiet', password: 'secret' });
    try {
      const store = redisStore(client);
      const claim = claimOf('quiet', 'a', { inbox: 'x' });
      expect((await say(store, claim)).kind).toBe('granted');
      expect((await say(store, claimOf('quiet', 'b', { inbox: 'y' }))).kind).toBe('busy');
      expect((await say(store, releaseOf(claim))).kind).toBe('released');
      await expect(store.listen?.('y', () => undefined)).rejects.toThrow(/NOPERM/);
      const texts = (await store.probe()).findings.map(({ text }) => text);
      expect(texts.some((text) => text.startsWith('Wake-ups may not be published'))).toBe(true);
      await store.close();
    } finally {
      client.disconnect();
    }
  });
});

describe.runIf(available('redis'))('clients of several servers', () => {
  it('Sentinel, with both packages', async () => {
    const sentinel = await startRedisSentinel({ sentinels: 1 });
    const nodes = sentinel.sentinels.map(({ host, port }) => ({ host, port }));
    const ioredis = new Redis({ sentinels: nodes, name: sentinel.masterName });
    const nodeRedis = await openNodeRedisSentinel(sentinel.masterName, nodes);
    try {
      await tryAll(ioredis, 'ioredis');
      await tryAll(nodeRedis.client, 'node-redis');
    } finally {
      ioredis.disconnect();
      await nodeRedis.end();
      await sentinel.stop();
    }
  });

  it('P11: a Cluster, with both packages: a batch over all slots never crosses slots', async () => {
    const cluster = await startRedisCluster();
    const opened: Opened[] = [];
    try {
      opened.push(await openIoredisCluster(cluster.nodes), await openNodeRedisCluster(cluster.nodes));
      const pipelined = new Cluster([...cluster.nodes], { enableAutoPipelining: true });
      const prefixed = new Cluster([...cluster.nodes], { keyPrefix: 'app:' });
      const valkey = new ValkeyCluster([...cluster.nodes]);
      const rootNodes = cluster.nodes.map(({ url }) => ({ url }));
      const version4 = createCluster4({ rootNodes });
      await version4.connect();
      opened.push({ client: version4, end: () => version4.disconnect() });
      for (const client of [pipelined, prefixed, valkey]) {
        opened.push({ client, end: () => client.disconnect() });
      }
      for (const [index, { client }] of opened.entries()) {
        const store = redisStore(client);
        const claims = Array.from({ length: 200 }, (_, key) => claimOf(`${index}:${key}`, 'a'));
        const replies = await Promise.all(store.apply([...claims, ...claims.map(releaseOf)]));
        expect(replies.slice(0, 200).filter(({ kind }) => kind !== 'granted')).toEqual([]);
        expect(replies.slice(200).filter((reply) => reply.kind !== 'released' || !reply.held)).toEqual([]);
        await tryAll(client, `client ${index}`);
      }
      const [node] = cluster.nodes;
      const single = new Redis(String(node?.url));
      const wrong = redisStore(single);
      const names = Array.from({ length: 20 }, (_, key) => claimOf(`wrong:${key}`, 'a'));
      const results = await Promise.allSettled(wrong.apply(names));
      for (const result of results) {
        expect(result.status === 'rejected' && result.reason).toBeInstanceOf(UnsupportedError);
      }
      expect((await wrong.probe()).findings.map(({ text }) => text).join()).toContain('use a cluster client');
      single.disconnect();
    } finally {
      for (const { end } of opened) await end();
      await cluster.stop();
    }
  });
});
