import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { available, type RedisServer, startRedis, startRedisCluster } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { StoreError } from '../../packages/holdfast/src/protocol/index.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';
import { openStore as openRedis } from '../../packages/holdfast/src/stores/redis/from-url.js';
import { nodeRedisOpener, REDIS_CLIENTS } from '../../packages/holdfast/src/stores/redis/open-client.js';

const opened: Store[] = [];

/** For a moment after its end a server's port takes connections all the same, and breaks them. */
async function failureOf(store: Store): Promise<string> {
  return store.read('job').then(
    () => 'no failure',
    (error: Error) => error.message,
  );
}

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

describe.runIf(available('redis'))('redis: with node-redis 4', () => {
  const load = async () => nodeRedisOpener((await import('redis4')) as unknown as typeof import('redis'));
  const clients = [{ name: 'redis', load }];

  it('opens one server and a cluster, and leaves no connection when the store is closed', async () => {
    const [server, cluster] = [await startRedis({ own: true }), await startRedisCluster()];
    const admin = new Redis(server.url);
    try {
      const nodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',');
      const urls = [
        ['redis', `//${server.host}:${server.port}/1`],
        ['redis+cluster', `//${nodes}`],
      ] as const;
      for (const [scheme, rest] of urls) {
        const locks = createLocks(await openRedis(scheme, rest, clients));
        expect(await locks.withLock('job', ({ token }) => token)).toBeGreaterThan(0);
        await locks.close({ drain: 0 });
      }
      await expect
        .poll(async () => String(await admin.call('CLIENT', 'LIST')))
        .not.toContain('name=holdfast');
    } finally {
      admin.disconnect();
      await Promise.all([server.stop(), cluster.stop()]);
    }
  });
});

describe.runIf(available('redis')).each(REDIS_CLIENTS.map(({ name }) => name))('redis: with %s', (name) => {
  const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    server = await startRedis({ own: true });
    admin = new Redis(server.port, server.host);
    // Whatever happens to the server here is meant.
    admin.on('error', () => undefined);
    await admin.call('ACL', 'SETUSER', 'app:1', 'on', '>p@ss/w:rd?#%', '~*', '&*', '+@all');
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  async function open(rest: string): Promise<Store> {
    const store = await openRedis('redis', rest, clients);
    opened.push(store);
    return store;
  }
  const here = (): string => `${server.host}:${server.port}`;
  const connections = async (): Promise<number> =>
    String(await admin.call('CLIENT', 'LIST')).match(/name=holdfast\b/g)?.length ?? 0;

  it('keeps locks in the database and under the prefix that the URL names', async () => {
    const locks = createLocks(await open(`//${here()}/3?prefix=my%20locks:`));
    await locks.withLock('job', async () => {
      await admin.select(3);
      expect(await admin.keys('my locks:*')).toHaveLength(1);
      await admin.select(0);
      expect(await admin.keys('*')).toEqual([]);
    });
    await locks.close({ drain: 0 });
  });

  it('reaches a server by its Unix socket, and by a valkey: URL', async () => {
    const socket = join(mkdtempSync(join(tmpdir(), 'holdfast-socket-')), 'redis.sock');
    const own = await startRedis({ own: true, config: { unixsocket: socket } });
    const there = new Redis(socket, { db: 2 });
    there.on('error', () => undefined);
    try {
      const bySocket = createLocks(await openRedis('redis+unix', `//${socket}?database=2`, clients));
      const byName = createLocks(await openRedis('valkey', `//${own.host}:${own.port}/2`, clients));
      await bySocket.withLock('job', async () => {
        expect(await there.keys('*')).toEqual(['holdfast:default/job']);
        expect(await byName.tryAcquire('job')).toBeNull();
      });
      await Promise.all([bySocket.close({ drain: 0 }), byName.close({ drain: 0 })]);
      await own.kill();
      const gone = await openRedis('valkey+unix', `//${socket}`, clients);
      opened.push(gone);
      expect(await failureOf(gone)).toContain(`nothing listens at ${socket}`);
    } finally {
      there.disconnect();
      await own.stop();
      rmSync(dirname(socket), { recursive: true, force: true });
    }
  });

  it('sets the client up so that nothing of it has to be said to whoever asks what is promised', async () => {
    const { findings } = await (await open(`//${here()}`)).probe();
    expect(findings.filter(({ text }) => text.includes(name === 'redis' ? 'node-redis' : name))).toEqual([]);
  });

  it('gives user name and password to the server as they were before they were escaped', async () => {
    const user = `${encodeURIComponent('app:1')}:${encodeURIComponent('p@ss/w:rd?#%')}`;
    const store = await open(`//${user}@${here()}/`);
    expect(await store.read('job')).toBeNull();
    const refused = await open(`//${encodeURIComponent('app:1')}:wrong@${here()}`);
    const reading = refused.read('job');
    await expect(reading).rejects.toThrow(/refuses this user name and password/);
    await expect(reading).rejects.not.toThrow(/wrong/);
  });

  it('ends with the store the connections that were made for it', async () => {
    const store = await open(`//${here()}`);
    const locks = createLocks(store);
    await locks.withLock('job', async () => expect(await connections()).toBeGreaterThan(0));
    await locks.close({ drain: 0 });
    await store.close();
    await expect.poll(connections).toBe(0);
  });

  it('goes on by itself when the server was restarted', async () => {
    const locks = createLocks(await open(`//${here()}`));
    await locks.withLock('before', () => undefined);
    await server.restart();
    await using lease = await locks.acquire('after', { wait: 15_000 });
    expect(lease.held).toBe(true);
    await locks.close({ drain: 0 });
  });

  it('opens though nobody is there, says so in words, and works once somebody is', async () => {
    await server.kill();
    const began = performance.now();
    const store = await open(`//${here()}`);
    expect(performance.now() - began).toBeLessThan(10_000);
    await expect.poll(() => failureOf(store)).toMatch(/^nothing listens at .* is the server running/);
    const locks = createLocks(store);
    const failed: unknown = await locks.acquire('job', { wait: 300 }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(StoreError);
    expect((failed as StoreError).cause).toMatchObject({
      message: expect.stringMatching(/^nothing listens/),
    });
    await server.restart();
    await using lease = await locks.acquire('job', { wait: 15_000 });
    expect(lease.held).toBe(true);
    await locks.close({ drain: 0 });
  });

  it('does not wait for ever for a server that hangs, neither on opening nor on closing', async () => {
    await server.pause();
    try {
      const store = await openRedis('redis', `//${here()}`, clients);
      await expect(store.read('job')).rejects.toThrow();
      await store.close();
    } finally {
      await server.resume();
    }
  });
});

describe.runIf(available('redis')).each(REDIS_CLIENTS.map(({ name }) => name))(
  'redis+cluster: with %s',
  (name) => {
    const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
    let cluster: Awaited<ReturnType<typeof startRedisCluster>>;

    beforeAll(async () => {
      cluster = await startRedisCluster();
    });
    afterAll(async () => cluster?.stop());

    it('finds the other nodes from those that the URL names, and ends them all', async () => {
      const [one, two] = cluster.nodes;
      const store = await openRedis(
        'redis+cluster',
        `//${one?.host}:${one?.port},${two?.host}:${two?.port}`,
        clients,
      );
      const locks = createLocks(store);
      const keys = Array.from({ length: 20 }, (_, at) => `job:${at}`);
      const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
      expect(leases.every(({ held }) => held)).toBe(true);
      await locks.close({ drain: 0 });
    });

    it('opens though nobody is there, and says so in words', async () => {
      const store = await openRedis('redis+cluster', '//127.0.0.1:1,127.0.0.1:2', clients);
      opened.push(store);
      await expect(store.read('job')).rejects.toThrow(/127\.0\.0\.1:1, 127\.0\.0\.1:2/);
    });
  },
);

it.runIf(available('redis'))('says that TLS was tried', async () => {
  const server = await startRedis({ own: true });
  try {
    const store = await openRedis('rediss', `//${server.host}:${server.port}`);
    opened.push(store);
    await expect(store.read('job')).rejects.toThrow(/over TLS/);
  } finally {
    await server.stop();
  }
});
