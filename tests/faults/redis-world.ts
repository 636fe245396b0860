/** Redis as a world to break, with and without a file that outlives a restart. */
import { startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import type { Driver } from './drivers.js';
import type { Server, World } from './world.js';

const APPEND_ONLY = { appendonly: 'yes', appendfsync: 'always' };

export function redisWorld(driver: Driver & ('ioredis' | 'node-redis'), durable: boolean): World {
  const startServer = async (): Promise<Server> => {
    const server = await startRedis({ own: true, ...(durable ? { config: APPEND_ONLY } : {}) });
    return Object.assign(server, { cutListeners: () => cutListeners(server.url) });
  };
  return {
    name: `Redis${durable ? ' with an append-only file' : ''} (${driver})`,
    driver,
    durable,
    startServer,
    // It starts in no time.
    openPlace: startServer,
    close: () => Promise.resolve(),
  };
}

async function cutListeners(url: string): Promise<number> {
  const operator = new Redis(url);
  const cut = Number(await operator.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
  operator.disconnect();
  return cut;
}
