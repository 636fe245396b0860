/** Holdfast on its Firestore store. The holder apart has a client of its own. */
import { firestoreStore } from 'holdfast/firestore';
import { firestoreRoundTrips, openFirestore, openFirestoreApart } from '../firestore-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ url, ttlMs }) {
    const client = openFirestore(url);
    return openHoldfast(firestoreStore(client), {
      ttlMs,
      openApart: async () => firestoreStore(openFirestoreApart(url)),
      storeCalls: firestoreRoundTrips,
      closed: () => client.terminate(),
    });
  },
};
