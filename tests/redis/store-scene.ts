/** Redis as the store's tests need it: clients of every kind, closed with what they were opened for. */
import type { Claim, Command, Release, Reply, Store } from 'holdfast/protocol';
import { type RedisClient, type RedisStoreOptions, redisStore } from 'holdfast/redis';
import { conformanceSuite, type Harness } from 'holdfast/testkit';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import { describe, it } from 'vitest';

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
    hintMsMax: 10_000,
  };
}

const CASE_MS_MAX = 180_000;

/** Every promise of a store, with the seed of its random part in the title. */
export function runSuite(harness: Harness, sequences: number): void {
  const seed = Math.floor(Math.random() * 2 ** 31);
  describe(`${harness.name} (seed ${seed})`, () => {
    for (const { name, run } of conformanceSuite(harness, { sequences, seed })) it(name, run, CASE_MS_MAX);
  });
}

export function claimOf(key: string, process: string, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key,
    hold: { process, number: 1 },
    owner: process,
    permits: 1,
    capacity: 1,
    ttlMs: 10_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export function releaseOf({ key, hold }: Claim): Release {
  return { kind: 'release', key, hold, minHoldMs: 0 };
}

export async function say(store: Store, command: Command): Promise<Reply> {
  const [reply] = await Promise.all(store.apply([command]));
  if (!reply) throw new Error('No reply.');
  return reply;
}

/** How often a command was executed since the server's statistics were last reset, scripts counted as one. */
export async function callsOf(server: Redis, command: string): Promise<number> {
  const stats = await server.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}
