/** Written by hand: the same service, by the same `fetch`, one request an operation. */
import { startServer } from '../service-client.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    const { url, key: credential, stop } = await startServer('service');
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
    const post = async (/** @type {string} */ path, /** @type {object} */ body) => {
      const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(`The service answered ${answer.status}: ${await answer.text()}`);
      return answer.json();
    };
    return {
      cycle(key) {
        const lock = `${url}/v2/locks/bench/${encodeURIComponent(key)}`;
        return async () => {
          const { hold } = /** @type {{ hold: string }} */ (await post(`${lock}/acquire`, { ttl: ttlMs }));
          await post(`${lock}/release`, { hold });
        };
      },
      close: async () => stop(),
    };
  },
};
