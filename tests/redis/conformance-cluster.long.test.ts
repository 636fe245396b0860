import { available, type RedisCluster, startRedisCluster } from 'holdfast-test-servers';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, openIoredisCluster, openNodeRedisCluster, runSuite } from './store-scene.js';

describe.runIf(available('redis'))('a Redis Cluster of three', () => {
  let cluster: RedisCluster;
  let plain: Cluster;

  beforeAll(async () => {
    cluster = await startRedisCluster();
    // On a busy machine servers that answer late part for a moment, and hints between them are lost.
    for (const { url } of cluster.nodes) {
      const node = new Redis(url);
      await node.config('SET', 'cluster-node-timeout', '30000');
      node.disconnect();
    }
    plain = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
  });

  afterAll(async () => {
    plain?.disconnect();
    await cluster?.stop();
  });

  const withIoredis = harnessOf(
    'Redis Cluster with ioredis',
    () => openIoredisCluster(cluster.nodes),
    () => plain,
  );
  const withNodeRedis = harnessOf(
    'Redis Cluster with node-redis',
    () => openNodeRedisCluster(cluster.nodes),
    () => plain,
  );
  runSuite(withIoredis, 300, { when: 'long-run' });
  runSuite(withNodeRedis, 100, { when: 'long-run' });
});
