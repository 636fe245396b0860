/** What only a hostile or unlucky user does to the Redis store. */
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { redisStore } from 'holdfast/redis';
import {
  available,
  type RedisServer,
  startProxy,
  startRedis,
  startRedisCluster,
} from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { openStore as openRedis } from '../../packages/holdfast/src/stores/redis/from-url.js';
import { REDIS_CLIENTS } from '../../packages/holdfast/src/stores/redis/open-client.js';

describe.runIf(available('redis')).each(REDIS_CLIENTS.map(({ name }) => name))(
  'redis+cluster by URL, with %s',
  (name) => {
    const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
    let cluster: Awaited<ReturnType<typeof startRedisCluster>>;
    let proxy: Awaited<ReturnType<typeof startProxy>>;

    beforeAll(async () => {
      cluster = await startRedisCluster();
      const [node] = cluster.nodes;
      proxy = await startProxy({ host: node?.host ?? '', port: node?.port ?? 0 });
    });
    afterAll(async () => {
      await proxy?.stop();
      await cluster?.stop();
    });

    it('opened while no node could be reached, it works once one can, and whoever waits gets the lock', async () => {
      proxy.cut();
      const locks = createLocks(await openRedis('redis+cluster', `//${proxy.host}:${proxy.port}`, clients));
      const waiting = locks.acquire('job', { wait: 20_000 });
      await new Promise((resolve) => setTimeout(resolve, 500));
      proxy.pass();
      await using lease = await waiting;
      expect(lease.held).toBe(true);
      await locks.close({ drain: 0 });
    });

    it('closed while no node could be reached, it is refused as closed and does not open later', async () => {
      proxy.cut();
      const store = await openRedis('redis+cluster', `//${proxy.host}:${proxy.port}`, clients);
      await store.close();
      proxy.pass();
      await expect(store.read('job')).rejects.toThrow(/closed/);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(proxy.connections).toBe(0);
    });
  },
);

/** A name that moves: whoever connects reaches the server named last, and whoever is connected stays where it is. */
async function startName(first: RedisServer) {
  let target = first;
  const server = createServer((client) => {
    const behind = connectTo(target.port, target.host);
    client.pipe(behind).pipe(client);
    client.on('error', () => behind.destroy());
    behind.on('error', () => client.destroy());
    client.on('close', () => behind.destroy());
    behind.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    moveTo(next: RedisServer) {
      target = next;
    },
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

describe.runIf(available('redis'))('Redis', () => {
  it('F10: after a failover where the old master stays up, a client told to leave replicas finds the new one', async () => {
    const old = await startRedis({ own: true });
    const next = await startRedis({ own: true });
    const name = await startName(old);
    const locks = createLocks(
      await openRedis('redis', `//127.0.0.1:${name.port}`, REDIS_CLIENTS.slice(0, 1)),
    );
    const admin = new Redis(old.port, old.host);
    try {
      const before = await locks.acquire('job');
      await before.release();
      await admin.call('REPLICAOF', next.host, String(next.port));
      name.moveTo(next);
      await using lease = await locks.acquire('job', { wait: 15_000 });
      expect(lease.token).toBeGreaterThan(before.token);
    } finally {
      await locks.close({ drain: 0 });
      admin.disconnect();
      await name.stop();
      await old.stop();
      await next.stop();
    }
  });

  it('a cluster whose nodes are not known yet is not listed as empty', async () => {
    const server = await startRedis({ own: true });
    const proxy = await startProxy({ host: server.host, port: server.port });
    proxy.hang();
    const client = createCluster({ rootNodes: [{ socket: { host: proxy.host, port: proxy.port } }] });
    client.on('error', () => undefined);
    const connecting = client.connect().catch((error: unknown) => error);
    const store = redisStore(client);
    try {
      const listing = store.list({ prefix: '' })[Symbol.asyncIterator]();
      await expect(listing.next()).rejects.toThrow(/knows no server yet/);
    } finally {
      await store.close();
      client.destroy();
      await proxy.stop();
      await server.stop();
      await connecting;
    }
  });
});
