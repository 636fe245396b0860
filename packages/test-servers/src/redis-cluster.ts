/** A Redis Cluster of three masters without replicas that serves all slots. */
import { until } from './clock.js';
import { freePort } from './ports.js';
import { ask, fieldOf, type RedisServer, startPrivateRedis } from './redis.js';

export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
}

const NODES = 3;
const SLOTS = 16_384;
const JOIN_MS_MAX = 30_000;

interface Node {
  readonly server: RedisServer;
  readonly busPort: number;
}

/** The default bus port is 10,000 above the port, in the range of client sockets. */
async function startNode(triesLeft = 3): Promise<Node> {
  const busPort = await freePort();
  const config = {
    'cluster-enabled': 'yes',
    'cluster-node-timeout': '1000',
    'cluster-port': String(busPort),
  };
  try {
    return { server: await startPrivateRedis(config), busPort };
  } catch (error) {
    // Another process may have taken the bus port meanwhile.
    if (triesLeft <= 1) throw error;
    return startNode(triesLeft - 1);
  }
}

/** Sets different epochs first: nodes with equal ones would have to resolve a conflict. */
async function join(nodes: readonly Node[]): Promise<void> {
  const first = nodes[0];
  for (const [index, { server }] of nodes.entries()) {
    const from = Math.ceil((SLOTS * index) / nodes.length);
    const to = Math.ceil((SLOTS * (index + 1)) / nodes.length) - 1;
    await ask(server.port, undefined, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    await ask(server.port, undefined, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
  }
  for (const { server } of nodes.slice(1)) {
    const address = [String(first?.server.port), String(first?.busPort)];
    await ask(server.port, undefined, 'CLUSTER', 'MEET', '127.0.0.1', ...address);
  }
}

/** Whether this node knows the owner of every slot. */
async function knowsAll({ server }: Node): Promise<boolean> {
  const info = await ask(server.port, undefined, 'CLUSTER', 'INFO');
  return (
    fieldOf(info, 'cluster_state') === 'ok' &&
    fieldOf(info, 'cluster_slots_ok') === String(SLOTS) &&
    fieldOf(info, 'cluster_known_nodes') === String(NODES)
  );
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes: Node[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(({ server }) => server.stop()));
  };
  try {
    while (nodes.length < NODES) nodes.push(await startNode());
    await join(nodes);
    await until('the cluster agrees', JOIN_MS_MAX, async () =>
      (await Promise.all(nodes.map(knowsAll))).every(Boolean),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes: nodes.map(({ server }) => server), stop };
}
