/** What only a hostile or unlucky user does to the Redis store. */
import { available, startProxy, startRedisCluster } from 'holdfast-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { openRedis } from '../../packages/holdfast/src/open-store/redis.js';
import { REDIS_CLIENTS } from '../../packages/holdfast/src/open-store/redis-clients.js';

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
      await locks.close();
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
