/** Tells the clients apart by what they can do: nothing is imported to recognise them. */
import { InvalidArgumentError } from '../../protocol/index.js';
import type { Connection, Heard, Hears, Subscriber } from './connection.js';
import {
  type IoredisClient,
  type IoredisCluster,
  ioredisConnection,
  ioredisSubscriber,
  isIoredis,
} from './ioredis.js';
import {
  isNodeRedis,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisSentinel,
  nodeRedisConnection,
  nodeRedisSubscriber,
} from './node-redis.js';

/** A client of ioredis (`Redis`, `Cluster`) or of node-redis (`createClient`, `createCluster`, `createSentinel`). */
export type RedisClient =
  | IoredisClient
  | IoredisCluster
  | NodeRedisClient
  | NodeRedisCluster
  | NodeRedisSentinel;

export function connectionTo(client: RedisClient): Connection {
  const known = checkClient(client, 'client');
  return isIoredis(known) ? ioredisConnection(known) : nodeRedisConnection(known);
}

/** Listens on a connection that the user keeps for it. */
export function subscriberOn(client: RedisClient, heard: Heard, hears: Hears): Subscriber {
  return isIoredis(client)
    ? ioredisSubscriber(client, heard, hears)
    : nodeRedisSubscriber(client, heard, hears);
}

export function checkClient(client: unknown, what: string): RedisClient {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return client;
    if (isNodeRedis(client)) return client;
  }
  throw new InvalidArgumentError(
    `The ${what} is no Redis client that Holdfast knows. Give it a Redis or Cluster of ioredis 5 or later, or what ` +
      'createClient, createCluster or createSentinel of redis 5 or later return; a pool, a pipeline or a URL is none.',
  );
}
