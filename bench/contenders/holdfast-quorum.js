/** Holdfast on its quorum store. The holder apart has connections of its own. */
import { enrolMembers, quorumStore } from 'holdfast/quorum';
import { openAll, openRedisApart, redisRoundTrips } from '../redis-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const clients = await openAll(url, openRedisApart);
    await enrolMembers(clients);
    for (const client of clients) client.disconnect();
  },
  async open({ url, ttlMs }) {
    const clients = await openAll(url);
    return openHoldfast(quorumStore(clients), {
      ttlMs,
      openApart: async () => quorumStore(await openAll(url, openRedisApart)),
      storeCalls: redisRoundTrips,
      closed: async () => {
        for (const client of clients) client.disconnect();
      },
    });
  },
};
