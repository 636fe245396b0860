/** NATS as a world to break: its buckets lie in files, so that locks outlive the server. */
import { startNats } from 'holdfast-test-servers';
import type { Server, World } from './world.js';

export function natsWorld(): World {
  const startServer = async (): Promise<Server> => {
    const server = await startNats({ own: true });
    return Object.assign(server, {
      url: `${server.url}/locks`,
      // Hints come on the connection that everything goes over: there is none to cut beside it.
      cutListeners: () => Promise.resolve(0),
    });
  };
  return {
    name: 'NATS',
    driver: 'nats',
    durable: true,
    startServer,
    // It starts in no time.
    openPlace: startServer,
    close: () => Promise.resolve(),
  };
}
