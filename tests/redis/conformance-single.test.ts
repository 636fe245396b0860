import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, openIoredis, openNodeRedis, runSuite } from './store-scene.js';

describe.runIf(available('redis'))('one Redis server', () => {
  let server: RedisServer;
  let plain: Redis;

  beforeAll(async () => {
    server = await startRedis();
    plain = new Redis(server.url);
  });

  afterAll(async () => {
    plain?.disconnect();
    await server?.stop();
  });

  const withIoredis = harnessOf(
    'Redis with ioredis',
    () => openIoredis(server),
    () => plain,
  );
  const withNodeRedis = harnessOf(
    'Redis with node-redis',
    () => openNodeRedis(server),
    () => plain,
  );
  runSuite(withIoredis, 1_000);
  runSuite(withNodeRedis, 100);
});
