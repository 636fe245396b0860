/** Holdfast on its Redis store. The holder apart has a connection of its own. */
import { redisStore } from 'holdfast/redis';
import { openRedis, openRedisApart, redisRoundTrips } from '../redis-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = await openRedis(url);
    return openHoldfast(redisStore(client), {
      ttlMs,
      openApart: async () => redisStore(await openRedisApart(url)),
      storeCalls: redisRoundTrips,
      closed: async () => client.disconnect(),
    });
  },
};
