/** LockServiceCentral and Holdfast on one collection of Firestore: the service uses transactions. */
import { type Firestore, Timestamp } from '@google-cloud/firestore';
import { firestoreStore } from 'holdfast/firestore';
import { lockServiceCentral } from 'holdfast/firestore/layouts';
import type { Store } from 'holdfast/protocol';
import { type FirestoreServer, startFirestore } from 'holdfast-test-servers';
import { newCollection, warmClients } from '../firestore/store-scene.js';
import { CENTRAL_TIMES, type CentralFleet } from './central-fleet.js';
import { closeLocks } from './fleet.js';
import type { MachineClock } from './foreign.js';
import { type CentralFields, CentralOnRecords, type Operate } from './foreign-central.js';

export function centralOnFirestore(client: Firestore, collection: string): Operate {
  return async (id, change) => {
    const document = client.collection(collection).doc(id);
    try {
      await client.runTransaction(async (transaction) => {
        const found = await transaction.get(document);
        const next = change((found.data() as CentralFields | undefined) ?? null);
        if (next === null) transaction.delete(document);
        else if (next) transaction.set(document, { ...next, ttl: new Timestamp(next.expiry, 0) });
      });
      return true;
    } catch (error) {
      // As there: whatever went wrong, the lock is not held.
      if (error instanceof Error && 'code' in error) return false;
      throw error;
    }
  };
}

export class FirestoreFleet implements CentralFleet {
  readonly layout = lockServiceCentral;
  readonly clocksApartMs = CENTRAL_TIMES.clocksApartMs;
  readonly afterForeignMs = CENTRAL_TIMES.afterForeignMs;
  readonly afterOursMs = CENTRAL_TIMES.afterOursMs;
  /** On a busy machine, the emulator does not answer for seconds. */
  readonly holderTtlMs = 10_000;
  readonly collection = newCollection();
  server!: FirestoreServer;
  #clients: readonly Firestore[] = [];
  readonly #stores: Store[] = [];

  get url(): string {
    const { host, port } = this.server;
    return `firestore://holdfast/${this.collection}?layout=${this.layout.name}&emulator=${host}:${port}`;
  }

  get #client(): Firestore {
    const [client] = this.#clients;
    if (!client) throw new Error('No client.');
    return client;
  }

  async open(): Promise<void> {
    this.server = await startFirestore();
    this.#clients = await warmClients(this.server, 1);
    // Java takes long to become fast, for transactions too.
    for (let round = 0; round < 20; round++) {
      await (await this.foreign().acquire('warm', 'nobody', 60_000))?.release();
    }
  }

  async close(): Promise<void> {
    await closeLocks();
    await Promise.all(this.#stores.map((store) => store.close()));
    await Promise.all(this.#clients.map((client) => client.terminate()));
    await this.server.stop();
  }

  store(): Store {
    const store = firestoreStore(this.#client, { collection: this.collection, layout: this.layout });
    this.#stores.push(store);
    return store;
  }

  foreign(clock?: MachineClock, namespace?: string): CentralOnRecords {
    return new CentralOnRecords(centralOnFirestore(this.#client, this.collection), clock, namespace);
  }

  async record(name: string): Promise<Record<string, unknown> | null> {
    return (await this.#document(name).get()).data() ?? null;
  }

  async stored(name: string): Promise<CentralFields | null> {
    return (await this.record(name)) as CentralFields | null;
  }

  async edit(name: string, fields: object): Promise<void> {
    await this.#document(name).set(fields, { merge: true });
  }

  async forget(name: string): Promise<void> {
    await this.#document(name).delete();
  }

  #document(name: string) {
    return this.#client.collection(this.collection).doc(name.includes(':') ? name : `default:${name}`);
  }
}
