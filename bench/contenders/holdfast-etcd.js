/** Holdfast on its etcd store. The holder apart has a client of its own. */
import { etcdClient, etcdStore } from 'holdfast/etcd';
import { countedFetch, etcdRoundTrips } from '../etcd-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = etcdClient({ endpoints: [url], fetch: countedFetch });
    return openHoldfast(etcdStore(client), {
      ttlMs,
      openApart: async () => etcdStore(etcdClient({ endpoints: [url] })),
      storeCalls: etcdRoundTrips,
    });
  },
};
