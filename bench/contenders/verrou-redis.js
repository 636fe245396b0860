/** The Redis store of @verrou/core. */
import { redisStore } from '@verrou/core/drivers/redis';
import { RETRY_MS } from '../plan.js';
import { openRedis, redisRoundTrips } from '../redis-client.js';
import { openVerrou } from './verrou-session.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const connection = await openRedis(url);
    return openVerrou(redisStore({ connection }).factory(), {
      ttlMs,
      retryMs: RETRY_MS,
      storeCalls: redisRoundTrips,
      close: async () => connection.disconnect(),
    });
  },
};
