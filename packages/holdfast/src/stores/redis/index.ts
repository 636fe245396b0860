/** Locks in Redis, shared by everybody who reaches the server. The client is the caller's. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { checkClient, type RedisClient } from './clients.js';
import { storeOn } from './store.js';

export type { RedisClient } from './clients.js';
export type { IoredisClient, IoredisCluster } from './ioredis.js';
export type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from './node-redis.js';

export interface RedisStoreOptions {
  /** What the keys and channels of the locks begin with: 'holdfast:' unless told. All who share locks use the same. */
  readonly prefix?: string;
  /** A connected client kept for listening, where the store shall not open one of its own. It is not closed. */
  readonly subscriber?: RedisClient;
}

/** The client is used as it is and never closed; for listening, the store opens one connection like it. */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  checkOptionNames(options, ['prefix', 'subscriber']);
  const { prefix = 'holdfast:', subscriber } = options;
  if (typeof prefix !== 'string' || prefix === '') {
    throw new InvalidArgumentError(
      'The prefix has to be a text of at least one letter, such as "holdfast:".',
    );
  }
  checkClient(client, 'client');
  if (subscriber !== undefined) checkClient(subscriber, 'subscriber');
  if (subscriber === client) {
    throw new InvalidArgumentError(
      'The subscriber has to be another client: a connection that listens takes no commands. ' +
        'Give it a duplicate of the client, or leave it out.',
    );
  }
  return storeOn(client, { prefix, subscriber });
}
