/** A lock service on an SQLite file as a world to break. */
import type { Server, World } from '../faults/world.js';
import { clearScene, freshFile, ServiceProcess } from './scene.js';

export const httpWorld: World = {
  name: 'a lock service on SQLite',
  driver: 'http',
  durable: true,
  startServer,
  openPlace: startServer,
  close: () => Promise.resolve(),
};

/** For `afterAll`. */
export const clearWorld = clearScene;

async function startServer(): Promise<Server> {
  const service = await new ServiceProcess(freshFile()).start();
  return {
    url: service.url,
    host: '127.0.0.1',
    port: service.port,
    cutListeners: () => service.cutStreams(),
    pause: async () => service.signal('SIGSTOP'),
    resume: async () => service.signal('SIGCONT'),
    restart: () => service.restart(),
    kill: () => service.kill(),
    stop: () => service.kill(),
  };
}
