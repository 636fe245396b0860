/** Redis as the store's tests need it: clients of every kind, closed with what they were opened for. */
import type { Store } from 'holdfast/protocol';
import { type RedisClient, type RedisStoreOptions, redisStore } from 'holdfast/redis';
import type { Harness } from 'holdfast/testkit';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';

export { claimOf, releaseOf, runSuite, say } from '../store-talk.js';

/** A client and the way to end it. */
export interface Opened {
  readonly client: RedisClient;
  end(): void | Promise<void>;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

export async function openIoredis({ host, port }: Address): Promise<Opened> {
  const client = new Redis({ host, port });
  return { client, end: () => client.disconnect() };
}

export async function openIoredisCluster(nodes: readonly Address[]): Promise<Opened> {
  const client = new Cluster(nodes.map(({ host, port }) => ({ host, port })));
  return { client, end: () => client.disconnect() };
}

export async function openNodeRedis({ host, port }: Address): Promise<Opened> {
  const client = createClient({ socket: { host, port } });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.destroy() };
}

export async function openNodeRedisCluster(nodes: readonly Address[]): Promise<Opened> {
  const client = createCluster({ rootNodes: nodes.map(({ host, port }) => ({ socket: { host, port } })) });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.destroy() };
}

export async function openNodeRedisSentinel(name: string, nodes: readonly Address[]): Promise<Opened> {
  const client = createSentinel({ name, sentinelRootNodes: nodes.map(({ host, port }) => ({ host, port })) });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.destroy() };
}

/** A store whose client ends with it. */
async function openStoreWith(open: () => Promise<Opened>, options: RedisStoreOptions = {}): Promise<Store> {
  const { client, end } = await open();
  const store = redisStore(client, options);
  return {
    ...store,
    async close() {
      await store.close();
      await end();
    },
  };
}

/** A later format may look like anything, but it says its number first. */
const SPOIL = "return redis.call('SET', KEYS[1], cmsgpack.pack({ 99, 'of tomorrow' }), 'PX', 60000)";

/** `server` is an ioredis client that sees the same keys. */
export function harnessOf(name: string, open: () => Promise<Opened>, server: () => Redis | Cluster): Harness {
  return {
    name,
    open: () => openStoreWith(open),
    async forget(key) {
      await server().del(`holdfast:${key}`);
    },
    async spoil(key) {
      await server().eval(SPOIL, 1, `holdfast:${key}`);
    },
  };
}

/** How often a command was executed since the server's statistics were last reset, scripts counted as one. */
export async function callsOf(server: Redis, command: string): Promise<number> {
  const stats = await server.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}
