/**
 * The Firestore emulator as a world to break. It keeps nothing over a restart. It takes long to start and to become fast,
 * so cases share it, each with a collection of its own; those that break it come one after the other.
 */
import { Firestore } from '@google-cloud/firestore';
import { createLocks } from 'holdfast';
import { firestoreStore } from 'holdfast/firestore';
import { type FirestoreServer, startFirestore } from 'holdfast-test-servers';
import type { Server, World } from './world.js';

export function firestoreWorld(): World {
  let starting: Promise<FirestoreServer> | null = null;
  let places = 0;
  const startServer = async (): Promise<Server> => {
    starting ??= startWarm();
    const server = await starting;
    return {
      ...server,
      url: `${server.url}/locks-${places++}`,
      // Hints come on the connection that everything goes over: there is none to cut beside it.
      cutListeners: () => Promise.resolve(0),
      // It goes with the world.
      stop: () => Promise.resolve(),
    };
  };
  return {
    name: 'Firestore emulator',
    driver: 'firestore',
    durable: false,
    // A turn takes the emulator long on a busy machine.
    waitMs: 20_000,
    oneServer: true,
    http2: true,
    startServer,
    openPlace: startServer,
    async close() {
      await (await starting)?.stop();
    },
  };
}

async function startWarm(): Promise<FirestoreServer> {
  const server = await startFirestore({ own: true });
  const { host, port } = server;
  // It takes any. Without them, the client would look for those of this machine.
  const credentials = { client_email: 'emulator', private_key: 'emulator' };
  const client = new Firestore({ projectId: 'holdfast', host, port, ssl: false, credentials });
  const locks = createLocks(firestoreStore(client, { collection: 'warm' }));
  for (let round = 0; round < 20; round++)
    await locks.withLock(`warm${round}`, async () => undefined, { wait: '30s' });
  await locks.close({ drain: 0 });
  await client.terminate();
  return server;
}
