/** Firestore as the store's tests need it: clients of the emulator, and collections of their own. */
import { randomUUID } from 'node:crypto';
import { Firestore, type Settings } from '@google-cloud/firestore';
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import { type FirestoreStoreOptions, firestoreStore } from 'holdfast/firestore';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';

export { claimOf, releaseOf, renewOf, say } from '../store-talk.js';

/** An emulator takes any. Without them, the client would look for those of this machine. */
const credentials = { client_email: 'emulator', private_key: 'emulator' };

export function clientOf(
  { host, port }: { readonly host: string; readonly port: number },
  more: Settings = {},
): Firestore {
  return new Firestore({ projectId: 'holdfast', host, port, ssl: false, credentials, ...more });
}

/**
 * Clients that know the time already. The first answers take seconds: Java loads what it needs only then. A suite that
 * waits for ends would wait for seconds otherwise, each time.
 */
export async function warmClients(
  server: { readonly host: string; readonly port: number },
  count: number,
): Promise<readonly Firestore[]> {
  const clients = Array.from({ length: count }, () => clientOf(server));
  for (const client of clients) {
    // Without the limit of the store.
    for (let round = 0; round < 2; round++) await client.collection('warm').doc('warm').set({ round });
    const store = firestoreStore(client, { collection: 'warm' });
    for (let round = 0; round < 3; round++) await store.probe();
    await store.close();
  }
  return clients;
}

export function newCollection(): string {
  return `locks-${randomUUID()}`;
}

/** The document's id of a plain key. */
const idOf = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** What a busy machine adds to a round trip, on both sides of the estimate. */
const DOUBT_MS = 400;

export function harnessOf(
  name: string,
  clients: () => readonly Firestore[],
  collection: string,
  options: FirestoreStoreOptions = {},
): Harness {
  let opened = 0;
  const raw = (key: string) => {
    const [client] = clients();
    if (!client) throw new Error('No client.');
    return client.collection(collection).doc(idOf(key));
  };
  return {
    name,
    async open(): Promise<Store> {
      const all = clients();
      const client = all[opened++ % all.length];
      if (!client) throw new Error('No client.');
      return firestoreStore(client, { collection, ...options });
    },
    async forget(key) {
      await raw(key).delete();
    },
    async spoil(key) {
      await raw(key).set({ lock: JSON.stringify({ version: 99 }) });
    },
    doubtMs: DOUBT_MS,
    lineMax: WAITERS_MAX,
  };
}
