import { available, type RedisCluster, startRedisCluster } from 'holdfast-servers';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, openIoredisCluster, openNodeRedisCluster, runSuite } from './store-scene.js';

describe.runIf(available('redis'))('a Redis Cluster of three', () => {
  let cluster: RedisCluster;
  let plain: Cluster;

  beforeAll(async () => {
    cluster = await startRedisCluster();
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
  runSuite(withIoredis, 1_000);
  runSuite(withNodeRedis, 100);
});
