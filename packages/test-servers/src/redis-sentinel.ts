/** A Redis master, its replica, and the Sentinels that promote the replica when the master fails. */
import { until } from './clock.js';
import { need } from './install.js';
import { ask, fieldOf, type RedisServer, type Reply, redisPlan, startPrivateRedis } from './redis.js';
import { type Controls, supervise } from './supervise.js';

export interface RedisSentinel {
  readonly sentinels: readonly Controls[];
  readonly masterName: string;
  /** The master at the start. */
  readonly master: RedisServer;
  readonly replica: RedisServer;
  stop(): Promise<void>;
}

export interface SentinelOptions {
  readonly sentinels?: 1 | 2 | 3;
}

const MASTER_NAME = 'holdfast';
const SETTLE_MS_MAX = 30_000;

function startSentinel(binary: string, master: RedisServer, count: number): Promise<Controls> {
  const quorum = Math.floor(count / 2) + 1;
  const config = {
    bind: '127.0.0.1',
    'sentinel monitor': `${MASTER_NAME} 127.0.0.1 ${master.port} ${quorum}`,
    'sentinel down-after-milliseconds': `${MASTER_NAME} 1000`,
    'sentinel failover-timeout': `${MASTER_NAME} 5000`,
  };
  return supervise(redisPlan(binary, config, 'sentinel'));
}

/** The reply alternates names and values. */
function itemOf(reply: Reply, name: string): string | undefined {
  if (!Array.isArray(reply)) return undefined;
  const at = reply.findIndex((item, index) => index % 2 === 0 && item === name);
  return at === -1 ? undefined : String(reply[at + 1]);
}

/** A failover needs Sentinels that know the replica and each other. */
async function knowsAll(sentinel: Controls, count: number): Promise<boolean> {
  const state = await ask(sentinel.port, undefined, 'SENTINEL', 'MASTER', MASTER_NAME);
  const replicas = await ask(sentinel.port, undefined, 'SENTINEL', 'REPLICAS', MASTER_NAME);
  const replica = Array.isArray(replicas) ? (replicas[0] as Reply | undefined) : undefined;
  return (
    itemOf(state, 'num-slaves') === '1' &&
    itemOf(state, 'num-other-sentinels') === String(count - 1) &&
    itemOf(replica ?? null, 'master-link-status') === 'ok'
  );
}

async function isLinked(replica: RedisServer): Promise<boolean> {
  const info = await ask(replica.port, undefined, 'INFO', 'replication');
  return fieldOf(info, 'master_link_status') === 'up';
}

export async function startRedisSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const count = options.sentinels ?? 3;
  const binary = await need('redis');
  const started: Controls[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.stop()));
  };
  const keep = <Server extends Controls>(server: Server): Server => {
    started.push(server);
    return server;
  };
  try {
    const master = keep(await startPrivateRedis());
    const replica = keep(await startPrivateRedis({ replicaof: `127.0.0.1 ${master.port}` }));
    await until('the replica is linked', SETTLE_MS_MAX, () => isLinked(replica));
    const sentinels: Controls[] = [];
    while (sentinels.length < count) sentinels.push(keep(await startSentinel(binary, master, count)));
    await until('the Sentinels know each other', SETTLE_MS_MAX, async () =>
      (await Promise.all(sentinels.map((each) => knowsAll(each, count)))).every(Boolean),
    );
    return { sentinels, masterName: MASTER_NAME, master, replica, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
