/** The public names of the Redis store. See store.ts. */
export type { RedisClient } from './clients.js';
export type { IoredisClient, IoredisCluster } from './ioredis.js';
export type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from './node-redis.js';
export { type RedisStoreOptions, redisStore } from './store.js';
