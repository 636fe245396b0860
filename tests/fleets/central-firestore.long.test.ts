/** LockServiceCentral's records on Firestore, and one identity at both services. */
import { openStore } from 'holdfast';
import { type FirestoreClient, type FirestoreDocument, firestoreStore } from 'holdfast/firestore';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientOf } from '../firestore/store-scene.js';
import { centralCases, gate, type HeldStore, lateInstanceCase } from './cases-central.js';
import { exclusionCases } from './cases-exclusion.js';
import { plainCases } from './cases-plain.js';
import { processCases } from './cases-process.js';
import { raceCase } from './cases-race.js';
import { FirestoreFleet } from './central-firestore.js';
import { freshName, listed, locksOf } from './fleet.js';

describe.runIf(available('firestore'))('the documents of LockServiceCentral on Firestore', () => {
  const fleet = new FirestoreFleet();
  beforeAll(() => fleet.open());
  afterAll(() => fleet.close());

  // The longest first: they run side by side.
  processCases(() => fleet);
  exclusionCases(() => fleet, { heartbeats: 3 });
  plainCases(() => fleet);
  raceCase(() => fleet);
  centralCases(() => fleet);

  function heldStore(): HeldStore {
    const held = gate();
    const real: FirestoreClient = clientOf(fleet.server);
    const heldDocument = (document: FirestoreDocument): FirestoreDocument => ({
      get: () => document.get(),
      set: (fields) => document.set(fields),
      delete: () => document.delete(),
      onSnapshot: (onNext, onError) => document.onSnapshot(onNext, onError),
      async create(fields) {
        await held.pass();
        return await document.create(fields);
      },
      async update(fields, precondition) {
        await held.pass();
        return await document.update(fields, precondition);
      },
    });
    const client: FirestoreClient = {
      collection(path) {
        const collection = real.collection(path);
        const orderBy = collection.orderBy.bind(collection);
        return { orderBy, doc: (id) => heldDocument(collection.doc(id)) };
      },
    };
    const store = firestoreStore(client, { collection: fleet.collection, layout: fleet.layout });
    return { store, ...held };
  }
  lateInstanceCase(() => fleet, heldStore);

  it('a record of ours has the fields of the service, in its types, and is deleted days after its use', async () => {
    const name = freshName();
    await using lease = await locksOf(fleet).acquire(name);
    const record = (await fleet.record(name)) as { expiry: number; ttl: { toMillis(): number } };
    expect(record).toMatchObject({ namespace: 'default', lockName: name, leaseDuration: 30 });
    expect(Number.isInteger(record.expiry)).toBe(true);
    expect(record.ttl.toMillis()).toBeGreaterThan(lease.expiresAt.getTime() + 86_400_000);
  });

  it('documents that are no locks are refused by a command, and left out of a list', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    for (const fields of [{ owner: 'a' }, { owner: 1, instanceId: 'b', expiry: 'x' }]) {
      await fleet.edit(name, fields);
      await expect(locks.tryAcquire(name)).rejects.toThrow(/is not a lock of LockServiceCentral/);
      const { instances } = fleet.store();
      const who = { owner: 'a', instanceId: 'b' };
      await expect(instances?.acquire(`default/${name}`, who, 9, 'x')).rejects.toThrow(/is not a lock/);
      expect(await listed(locks, name)).toEqual([]);
    }
  });

  it('options that do not fit the layout are refused', async () => {
    const { host, port } = fleet.server;
    const url = `firestore://holdfast/locks?emulator=${host}:${port}`;
    await expect(openStore(`${url}&layout=other`)).rejects.toThrow(
      'There is no layout "other" for Firestore',
    );
    await expect(openStore(`${url}&layout=lock-service-central&queue=true`)).rejects.toThrow('has no queue');
  });
});
