/** etcd as a world to break: its keys lie in files, so that locks outlive the server. */
import { startEtcd } from 'holdfast-test-servers';
import type { Server, World } from './world.js';

export function etcdWorld(): World {
  const startServer = async (): Promise<Server> => {
    const server = await startEtcd({ own: true });
    return Object.assign(server, {
      url: `${server.url}/locks`,
      // etcd has no way to end the watches of others: cases cut the way that hints take.
      cutListeners: () => Promise.resolve(0),
    });
  };
  return {
    name: 'etcd',
    driver: 'etcd',
    durable: true,
    startServer,
    openPlace: startServer,
    close: () => Promise.resolve(),
  };
}
