/**
 * The least that a lock in etcd can be over its gateway: a transaction puts the key if there is none, and another deletes it
 * if its revision is the token. No renewal, and expiry by this machine's clock; who finds the key held looks again after a
 * while.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { countedFetch, encoded, etcdRoundTrips, post } from '../etcd-client.js';
import { RETRY_MS } from '../plan.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const transact = (/** @type {object} */ body) => post(countedFetch, `${url}/v3/kv/txn`, body);
    /** @param {string} key @returns {Promise<string>} the token */
    const take = async (key) => {
      for (let expected = '0'; ; ) {
        const value = encoded(JSON.stringify({ owner: randomUUID(), expiresAt: Date.now() + ttlMs }));
        const { succeeded, header, responses } = await transact({
          compare: [{ target: 'MOD', key, mod_revision: expected }],
          success: [{ request_put: { key, value } }],
          failure: [{ request_range: { key } }],
        });
        if (succeeded) return header.revision;
        const record = responses[0].response_range.kvs?.[0];
        const held = record && JSON.parse(Buffer.from(record.value, 'base64').toString('utf8'));
        const isOver = !held || held.expiresAt <= Date.now();
        if (!isOver) await sleep(RETRY_MS);
        expected = isOver ? (record?.mod_revision ?? '0') : '0';
      }
    };
    return {
      cycle: (name, work) => async () => {
        const key = encoded(`minimum/${name}`);
        const token = await take(key);
        if (work) await work();
        await transact({
          compare: [{ target: 'MOD', key, mod_revision: token }],
          success: [{ request_delete_range: { key } }],
        });
      },
      storeCalls: etcdRoundTrips,
      close: async () => undefined,
    };
  },
};
