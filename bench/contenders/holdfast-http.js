/** Holdfast on its HTTP store: what is asked for at one moment travels in one request. */
import { httpStore } from 'holdfast/http';
import { startServer } from '../service-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    const { url, key: apiKey, stop } = await startServer('service');
    const store = httpStore({ url, apiKey });
    return openHoldfast(store, {
      ttlMs,
      openApart: async () => httpStore({ url, apiKey }),
      async closed() {
        await store.close();
        stop();
      },
    });
  },
};
