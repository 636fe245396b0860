import { firestoreStore } from 'holdfast/firestore';
import { available, startFirestore } from 'holdfast-test-servers';
import { describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { newCollection, warmClients } from './store-scene.js';

describe.runIf(available('firestore'))('answers of Firestore', { timeout: 90_000 }, () => {
  const seed = Math.floor(Math.random() * 1_000_000);

  it(`F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (seed ${seed})`, async () => {
    const server = await startFirestore();
    const clients = await warmClients(server, 5);
    const collection = newCollection();
    const [looking, ...stores] = clients.map((each) => firestoreStore(each, { collection }));
    if (!looking) throw new Error('No store.');
    await expectExclusion({ stores, key: 'faulty', seed, runMs: 4_000, ttlMs: [300, 900] }, looking);
    await Promise.all(clients.map((client) => client.terminate()));
    await server.stop();
  });
});
