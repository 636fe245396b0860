/**
 * The Mutex of redis-semaphore. One object a contender, made once. It renews by a timer a lock, after four fifths of the
 * ttl unless told; held locks get a third of it, as often as Holdfast renews.
 */
import { Mutex } from 'redis-semaphore';
import { RETRY_MS } from '../plan.js';
import { openRedis, openRedisApart, redisRoundTrips } from '../redis-client.js';

const WAIT_MS = 3_600_000;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = await openRedis(url);
    const options = { lockTimeout: ttlMs, acquireTimeout: WAIT_MS, retryInterval: RETRY_MS };
    return {
      cycle(key, work) {
        const mutex = new Mutex(client, key, options);
        return async () => {
          await mutex.acquire();
          if (work) await work();
          await mutex.release();
        };
      },
      hold: (key) => {
        const mutex = new Mutex(client, key, { ...options, refreshInterval: Math.round(ttlMs / 3) });
        return mutex.acquire().then(() => mutex);
      },
      holdApart: async (key) => new Mutex(await openRedisApart(url), key, options).acquire(),
      wait: (key) => new Mutex(client, key, options).acquire(),
      storeCalls: redisRoundTrips,
      close: async () => client.disconnect(),
    };
  },
};
