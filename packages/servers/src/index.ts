/** Private real servers for tests and benchmarks. */
export type { ServerName } from './find.js';
export { closeRun, openRun } from './folders.js';
export { available, ensureInstalled } from './install.js';
export { type PgbouncerOptions, type PgbouncerServer, startPgbouncer } from './pgbouncer.js';
export { type PostgresOptions, type PostgresServer, startPostgres } from './postgres/index.js';
export { type PostgrestOptions, type PostgrestServer, startPostgrest } from './postgrest.js';
export { type ProxyTarget, startProxy, type TcpProxy } from './proxy.js';
export { type RedisOptions, type RedisServer, startRedis } from './redis.js';
export { type RedisCluster, startRedisCluster } from './redis-cluster.js';
export { type RedisSentinel, type SentinelOptions, startRedisSentinel } from './redis-sentinel.js';
export type { Controls } from './supervise.js';
