/**
 * Servers that take seconds to start, shared by all processes of a test run. The process that opened the run starts them
 * when the first of the others asks, over loopback, and they end with it.
 */
import { createServer, type ServerResponse } from 'node:http';
import { startDynamodb } from './dynamodb.js';
import { startFirestore } from './firestore.js';
import { listenSomewhere } from './listen.js';
import { SHARED_VARIABLE } from './shared-url.js';

const STARTS: Readonly<Record<string, () => Promise<{ readonly url: string; stop(): Promise<void> }>>> = {
  dynamodb: () => startDynamodb({ own: true }),
  firestore: () => startFirestore({ own: true }),
};

/** Returns what ends the sharing, and the servers. */
export async function shareServers(): Promise<() => Promise<void>> {
  const started = new Map<string, ReturnType<NonNullable<(typeof STARTS)[string]>>>();
  const answer = async (name: string, response: ServerResponse): Promise<void> => {
    const start = STARTS[name];
    if (start && !started.has(name)) started.set(name, start());
    try {
      response.end((await started.get(name))?.url);
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  };
  const { port, close } = await listenSomewhere(() =>
    createServer((request, response) => void answer((request.url ?? '').slice(1), response)),
  );
  process.env[SHARED_VARIABLE] = `http://127.0.0.1:${port}`;
  return async () => {
    delete process.env[SHARED_VARIABLE];
    await close();
    for (const server of await Promise.allSettled(started.values())) {
      if (server.status === 'fulfilled') await server.value.stop();
    }
  };
}
