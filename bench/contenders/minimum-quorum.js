/**
 * The least that a lock on three Redis servers can be: the two scripts of `minimum-redis`, sent to all three at once; two
 * that agree decide. Each server gives a token of its own, its time: one token for all, that always rises, would have to be
 * agreed on. It cannot wait, renew or take back half of a lock, so it runs only where nobody contends.
 */
import { openAll, redisRoundTrips } from '../redis-client.js';
import { GIVE, TAKE } from './minimum-redis.js';

/**
 * Resolves as soon as so many have; rejects when too few can.
 * @template T @param {readonly Promise<T>[]} asked @param {number} count @returns {Promise<T[]>}
 */
function first(asked, count) {
  return new Promise((resolve, reject) => {
    /** @type {T[]} */
    const answers = [];
    let failures = 0;
    for (const one of asked) {
      one.then(
        (answer) => {
          answers.push(answer);
          if (answers.length === count) resolve(answers);
        },
        (error) => {
          failures += 1;
          if (asked.length - failures < count) reject(error);
        },
      );
    }
  });
}

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const clients = await openAll(url);
    const load = async (/** @type {string} */ script) => {
      const [sha] = await Promise.all(clients.map((client) => client.script('LOAD', script)));
      return String(sha);
    };
    const [take, give] = [await load(TAKE), await load(GIVE)];
    /** @param {import('ioredis').Redis} client @param {string} key */
    const tokenFrom = async (client, key) => {
      const token = await client.evalsha(take, 1, key, ttlMs);
      if (typeof token !== 'string') throw new Error(`"${key}" is held.`);
      return token;
    };
    const majority = Math.floor(clients.length / 2) + 1;
    return {
      cycle: (key, work) => async () => {
        const asked = clients.map((client) => ({ client, token: tokenFrom(client, key) }));
        await first(
          asked.map(({ token }) => token),
          majority,
        );
        if (work) await work();
        // Each after its own grant: one that is still under way must not come behind its release.
        const released = asked.map(async ({ client, token }) => client.evalsha(give, 1, key, await token));
        await first(released, majority);
      },
      storeCalls: redisRoundTrips,
      close: async () => {
        for (const client of clients) client.disconnect();
      },
    };
  },
};
