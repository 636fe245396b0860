/** The beta of redlock 5 on the one server, or on all of a quorum. It retries for ever at a fixed delay. */
import Redlock from 'redlock-5';
import { RETRY_MS } from '../plan.js';
import { openAll, redisRoundTrips } from '../redis-client.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const clients = await openAll(url);
    // On several servers, contenders that come back at the same moment split them, and none gets a majority.
    const retryJitter = clients.length > 1 ? RETRY_MS : 0;
    const redlock = new Redlock(clients, { retryCount: -1, retryDelay: RETRY_MS, retryJitter });
    return {
      cycle: (key, work) => async () => {
        const lock = await redlock.acquire([key], ttlMs);
        if (work) await work();
        await lock.release();
      },
      storeCalls: redisRoundTrips,
      close: async () => {
        for (const client of clients) client.disconnect();
      },
    };
  },
};
