/**
 * What many write by hand: SET NX PX with a random value, and a script that compares before it deletes. No token, and it
 * cannot wait or renew, so it runs only where nobody contends.
 */
import { randomUUID } from 'node:crypto';
import { openRedis, redisRoundTrips } from '../redis-client.js';

const GIVE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = await openRedis(url);
    const give = String(await client.script('LOAD', GIVE));
    return {
      cycle: (key, work) => async () => {
        const mine = randomUUID();
        if ((await client.set(key, mine, 'PX', ttlMs, 'NX')) !== 'OK') throw new Error(`"${key}" is held.`);
        if (work) await work();
        await client.evalsha(give, 1, key, mine);
      },
      storeCalls: redisRoundTrips,
      close: async () => client.disconnect(),
    };
  },
};
