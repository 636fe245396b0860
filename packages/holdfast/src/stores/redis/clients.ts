/** Recognises a client by its methods: no client package is imported. */
import { InvalidArgumentError } from '../../protocol/index.js';
import type { OnListening } from '../clients/wake-up.js';
import type { Connection, OnMessage, Subscriber } from './connection.js';
import {
  type IoredisClient,
  type IoredisCluster,
  ioredisConnection,
  ioredisSubscriber,
  isIoredis,
} from './ioredis.js';
import {
  checkMode,
  isNodeRedis,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisSentinel,
  nodeRedisConnection,
  nodeRedisSubscriber,
} from './node-redis.js';

/** A client of ioredis or iovalkey (`Redis`, `Cluster`), or of node-redis (`createClient`, `createCluster`, `createSentinel`). */
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

/** Listens on a connection that belongs to the user. */
export function subscriberOn(
  client: RedisClient,
  onMessage: OnMessage,
  onListening: OnListening,
): Subscriber {
  return isIoredis(client)
    ? ioredisSubscriber(client, onMessage, onListening)
    : nodeRedisSubscriber(client, onMessage, onListening);
}

export function checkClient(client: unknown, what: string): RedisClient {
  if (typeof client === 'object' && client !== null) {
    if (isIoredis(client)) return client;
    if (isNodeRedis(client)) {
      checkMode(client, what);
      return client;
    }
  }
  throw new InvalidArgumentError(
    `The ${what} is not a Redis client that Holdfast knows. Pass a Redis or Cluster of ioredis 5 or later or of iovalkey, ` +
      'or the result of createClient, createCluster or createSentinel of redis 4 or later; not a pool, a pipeline or a URL.',
  );
}
