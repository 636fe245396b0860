/**
 * The least that a lock with a token can be in Firestore: a document is created if there is none, and deleted if it was
 * last updated then. The token is that time, which rises. Expiry is by this machine's clock, and nothing is renewed; who
 * finds the key held looks again after a while.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { firestoreRoundTrips, openFirestore } from '../firestore-client.js';
import { RETRY_MS } from '../plan.js';

/** Of gRPC: not found, already exists, failed precondition, aborted. */
const OTHERS_WERE_FASTER = [5, 6, 9, 10];

/** @template T @param {Promise<T>} write @returns {Promise<T | null>} */
async function unlessChanged(write) {
  try {
    return await write;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (OTHERS_WERE_FASTER.some((known) => known === code)) return null;
    throw error;
  }
}

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = openFirestore(url);
    const locks = client.collection('minimum');
    /** @param {string} key */
    const take = async (key) => {
      for (;;) {
        const fields = { expiresAt: Date.now() + ttlMs };
        const made = await unlessChanged(locks.doc(key).create(fields));
        if (made) return made.writeTime;
        const found = await locks.doc(key).get();
        const { updateTime: lastUpdateTime } = found;
        if (!lastUpdateTime) continue;
        if (found.get('expiresAt') <= Date.now()) {
          const taken = await unlessChanged(locks.doc(key).update(fields, { lastUpdateTime }));
          if (taken) return taken.writeTime;
        }
        await sleep(RETRY_MS);
      }
    };
    return {
      cycle: (key, work) => async () => {
        const token = await take(key);
        if (work) await work();
        await locks.doc(key).delete({ lastUpdateTime: token });
      },
      storeCalls: firestoreRoundTrips,
      close: () => client.terminate(),
    };
  },
};
