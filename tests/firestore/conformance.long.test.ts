import type { Firestore } from '@google-cloud/firestore';
import { available, type FirestoreServer, startFirestore } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { runSuite } from '../store-talk.js';
import { harnessOf, newCollection, warmClients } from './store-scene.js';

describe.runIf(available('firestore'))('the Firestore emulator', () => {
  let server: FirestoreServer;
  let clients: readonly Firestore[] = [];

  beforeAll(async () => {
    server = await startFirestore();
    clients = await warmClients(server, 4);
  });

  afterAll(async () => {
    await Promise.all(clients.map((client) => client.terminate()));
    await server?.stop();
  });

  const all = () => clients;
  const isSlow = true;
  runSuite(harnessOf('with a queue', all, newCollection()), 1_000, { when: 'long-run', isSlow });
  runSuite(harnessOf('without a queue', all, newCollection(), { queue: false }), 100, {
    when: 'long-run',
    isSlow,
  });
});
