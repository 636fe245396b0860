import { redisStore } from 'holdfast/redis';
import { available, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';

describe.runIf(available('redis'))('locks on Redis over a faulty connection', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  const drawn = Math.floor(Math.random() * 1_000_000);

  it.each([drawn, drawn + 1])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const clients = Array.from({ length: 5 }, () => new Redis(server.url));
      const [looking, ...stores] = clients.map((client) => redisStore(client));
      if (!looking) throw new Error('No store.');
      const key = `faulty-${seed}`;
      await expectExclusion({ stores, key, seed, runMs: 3_000, ttlMs: [150, 600] }, looking);
      for (const client of clients) client.disconnect();
    },
  );
});
