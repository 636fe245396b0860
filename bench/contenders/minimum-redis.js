/**
 * The least that a lock with a token can be in Redis: two scripts of a few lines, one call each. The first reads the
 * server's time, which is the token, and keeps it for the ttl if the key is free; the second compares before it deletes.
 * It cannot wait or renew, so it runs only where nobody contends.
 */
import { openRedis, redisRoundTrips } from '../redis-client.js';

export const TAKE = `
local time = redis.call('TIME')
local token = string.format('%d%06d', time[1], time[2])
if redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[1]) then return token end
return false`;
export const GIVE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = await openRedis(url);
    const take = String(await client.script('LOAD', TAKE));
    const give = String(await client.script('LOAD', GIVE));
    return {
      cycle: (key, work) => async () => {
        const token = await client.evalsha(take, 1, key, ttlMs);
        if (typeof token !== 'string') throw new Error(`"${key}" is held.`);
        if (work) await work();
        await client.evalsha(give, 1, key, token);
      },
      storeCalls: redisRoundTrips,
      close: async () => client.disconnect(),
    };
  },
};
