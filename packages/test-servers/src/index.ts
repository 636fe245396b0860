/** Private real servers for tests and benchmarks. */
export { type DynamodbOptions, type DynamodbServer, startDynamodb } from './dynamodb.js';
export {
  type EtcdCluster,
  type EtcdNode,
  type EtcdOptions,
  type EtcdServer,
  startEtcd,
  startEtcdCluster,
} from './etcd.js';
export type { ServerName } from './find.js';
export { type FirestoreServer, startFirestore } from './firestore.js';
export { closeRun, openRun } from './folders.js';
export type { ErrorAnswer, HttpCall, WhichCalls } from './http-fault-rules.js';
export { type HeldCall, type HttpFaults, startHttpFaults } from './http-faults.js';
export { available, ensureInstalled, need } from './install.js';
export { type MariadbOptions, type MariadbServer, startMariadb } from './mariadb.js';
export { type NatsOptions, type NatsServer, startNats } from './nats.js';
export { type NatsCluster, type NatsNode, startNatsCluster } from './nats-cluster.js';
export { type PgbouncerOptions, type PgbouncerServer, startPgbouncer } from './pgbouncer.js';
export { freePort } from './ports.js';
export { type PostgresOptions, type PostgresServer, startPostgres } from './postgres/index.js';
export { type PostgrestOptions, type PostgrestServer, startPostgrest } from './postgrest.js';
export { type PrometheusServer, promtool, startPrometheus } from './prometheus.js';
export { type ProxyTarget, startProxy, type TcpProxy } from './proxy.js';
export { type RedisOptions, type RedisServer, startRedis } from './redis.js';
export { type RedisCluster, startRedisCluster } from './redis-cluster.js';
export { type RedisSentinel, type SentinelOptions, startRedisSentinel } from './redis-sentinel.js';
export { shareServers } from './shared-servers.js';
export type { Controls } from './supervise.js';
