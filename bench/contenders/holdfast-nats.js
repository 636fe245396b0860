/** Holdfast on its NATS store. The holder apart has a connection of its own. */
import { createBucket, natsStore } from 'holdfast/nats';
import { natsRoundTrips, openNats, openNatsApart } from '../nats-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const connection = await openNatsApart(url);
    await createBucket(connection);
    await connection.close();
  },
  async open({ url, ttlMs }) {
    const connection = await openNats(url);
    return openHoldfast(natsStore(connection), {
      ttlMs,
      openApart: async () => natsStore(await openNatsApart(url)),
      storeCalls: natsRoundTrips,
      closed: () => connection.close(),
    });
  },
};
