/**
 * Three NATS servers with streams of three replicas. Two of them are enough to continue; without the leader they need some
 * seconds to elect another.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { randomName, until } from './clock.js';
import { need } from './install.js';
import { askJetstream, type NatsServer, natsPlan, withNats } from './nats.js';
import { freePort } from './ports.js';
import { supervise } from './supervise.js';

export interface NatsNode extends NatsServer {
  /** The name that `cluster.leader` of a stream has. */
  readonly name: string;
}

export interface NatsCluster {
  readonly nodes: readonly NatsNode[];
  readonly urls: readonly string[];
  /** Waits until all nodes are back and a stream can have three replicas. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

const NODES = 3;
const SETTLE_MS_MAX = 60_000;
const TRIES_MAX = 3;

/** A node without a leader counts as started: its peers may start after it. */
const isReady = async (connection: NatsConnection): Promise<boolean> => {
  await connection.flush();
  return true;
};

async function startNode(binary: string, routes: readonly number[], routePort: number): Promise<NatsNode> {
  const name = `nats-${randomName()}`;
  const peers = routes.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
  const config = { cluster: `{ name: holdfast, host: 127.0.0.1, port: ${routePort}, routes: [${peers}] }` };
  const controls = await supervise(natsPlan(binary, { name, config, isReady }));
  return Object.assign(controls, { name, url: `nats://${controls.host}:${controls.port}` });
}

/** All or none: when one does not start, the others are stopped. */
async function startNodes(binary: string, triesLeft = TRIES_MAX): Promise<readonly NatsNode[]> {
  const routes: number[] = [];
  while (routes.length < NODES) routes.push(await freePort());
  const starts = await Promise.allSettled(routes.map((port) => startNode(binary, routes, port)));
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  if (nodes.length === NODES) return nodes;
  await Promise.all(nodes.map((node) => node.stop()));
  // Another process may have taken the port of a route meanwhile.
  if (triesLeft > 1) return startNodes(binary, triesLeft - 1);
  throw new AggregateError(
    starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : [])),
    'the nodes of a NATS cluster did not start',
  );
}

/**
 * Creating a stream of three replicas is the only proof of a leader that knows all nodes. Its name is always the same: a
 * stream whose creation was answered too late is removed by the next attempt.
 */
async function holdsThreeReplicas({ port, name: node }: NatsNode): Promise<boolean> {
  const name = `settle-${node}`;
  const stream = { name, subjects: [name], num_replicas: NODES, storage: 'memory' };
  await withNats(port, undefined, async (connection) => {
    await askJetstream(connection, `STREAM.CREATE.${name}`, stream);
    await askJetstream(connection, `STREAM.DELETE.${name}`);
  });
  return true;
}

export async function startNatsCluster(): Promise<NatsCluster> {
  const nodes = await startNodes(await need('nats'));
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const settle = (): Promise<void> =>
    until('a stream of three replicas', SETTLE_MS_MAX, async () =>
      (await Promise.all(nodes.map(holdsThreeReplicas))).every(Boolean),
    );
  try {
    await settle();
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, urls: nodes.map(({ url }) => url), settle, stop };
}
