/**
 * A private etcd on loopback, or a cluster of three. Their data is in their folders and survives a restart and a kill. A
 * server named in HOLDFAST_TEST_ETCD_URL is used as it is.
 */
import { join } from 'node:path';
import { borrowed, givenUrl } from './borrowed.js';
import { randomName, timeout, until } from './clock.js';
import { type EtcdPeers, startEtcdPeers } from './etcd-peers.js';
import { need } from './install.js';
import { freePort } from './ports.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface EtcdServer extends Controls {
  /** The client URL: http, or https with `tls`. */
  readonly url: string;
}

export interface EtcdNode extends EtcdServer {
  readonly name: string;
}

export interface EtcdOptions {
  /** Further arguments. Means a private server. */
  readonly args?: readonly string[];
  /** Certificate and key of the server: client connections use TLS. Means a private server. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** A private server even if a variable names one: for tests that stop, pause or kill it. */
  readonly own?: boolean;
}

export interface EtcdCluster {
  readonly nodes: readonly EtcdNode[];
  /** The node that leads now, and the others. */
  ranks(): Promise<{ readonly leader: EtcdNode; readonly followers: readonly EtcdNode[] }>;
  /** Cuts a node off from the others; clients still reach it. */
  cutOff(node: EtcdNode): Promise<void>;
  /** Ends `cutOff`. */
  heal(): void;
  /** Waits until all nodes are back, and answer. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

const ANSWER_MS_MAX = 2_000;
const SETTLE_MS_MAX = 60_000;
const NODES = 3;
const TRIES_MAX = 3;

async function ask<T>(url: string, path: string, body: object = {}): Promise<T> {
  const request = { method: 'POST', body: JSON.stringify(body), signal: timeout(ANSWER_MS_MAX) };
  const response = await fetch(url + path, request);
  if (!response.ok) throw new Error(`${url}${path} answered with status ${response.status}`);
  return (await response.json()) as T;
}

interface Members {
  readonly members: readonly { readonly name?: string }[];
}

interface Setup {
  readonly name: string;
  /** All members: name=URL,… */
  readonly members: string;
  readonly peerPort: number;
  /** Where its peers reach it. */
  readonly peerUrl: string;
  readonly options: EtcdOptions;
  /** With TLS, says whether the server is ready. */
  readonly plainPort: number;
}

function plan(binary: string, { name, members, peerPort, peerUrl, options, plainPort }: Setup): Plan {
  const { args = [], tls } = options;
  return {
    name: 'etcd',
    gentle: 'SIGTERM',
    launch: (port, folder) => {
      const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
      const urls = tls ? `${url},http://127.0.0.1:${plainPort}` : url;
      const all = [
        ...['--name', name, '--data-dir', join(folder, 'data'), '--logger', 'zap', '--log-level', 'warn'],
        ...['--listen-client-urls', urls, '--advertise-client-urls', url, '--initial-cluster', members],
        ...['--listen-peer-urls', peerUrlAt(peerPort), '--initial-advertise-peer-urls', peerUrl],
        ...(tls ? ['--cert-file', tls.cert, '--key-file', tls.key] : []),
        ...args,
      ];
      return { command: binary, args: all, folder };
    },
    answers: async (port) => {
      const url = `http://127.0.0.1:${tls ? plainPort : port}`;
      const answer = await ask<Members>(url, '/v3/cluster/member/list');
      return answer.members.some((member) => member.name === name);
    },
  };
}

const peerUrlAt = (port: number): string => `http://127.0.0.1:${port}`;

async function startPrivate(options: EtcdOptions): Promise<EtcdServer> {
  const binary = await need('etcd');
  const name = `etcd-${randomName()}`;
  const peerPort = await freePort();
  const peerUrl = peerUrlAt(peerPort);
  const members = `${name}=${peerUrl}`;
  const setup = { name, members, peerPort, peerUrl, options, plainPort: await freePort() };
  const controls = await supervise(plan(binary, setup));
  const url = `${options.tls ? 'https' : 'http'}://${controls.host}:${controls.port}`;
  const server = Object.assign(controls, { url });
  const health = options.tls ? peerUrlAt(setup.plainPort) : url;
  await until('etcd has a leader', SETTLE_MS_MAX, () => isHealthy(health));
  return server;
}

/** Whether it has a leader, and can write. */
async function isHealthy(url: string): Promise<boolean> {
  await ask(url, '/v3/kv/range', { key: 'AA==' });
  return true;
}

export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  const given = givenUrl('etcd');
  const own = options.own === true || options.args !== undefined || options.tls !== undefined;
  return given === undefined || own ? startPrivate(options) : borrowed('etcd', given);
}

interface Started {
  readonly nodes: readonly EtcdNode[];
  readonly peers: EtcdPeers;
}

/** All or none: when one does not start, the others are stopped. */
async function startNodes(binary: string, triesLeft = TRIES_MAX): Promise<Started> {
  const ports: number[] = [];
  while (ports.length < NODES) ports.push(await freePort());
  const peers = await startEtcdPeers(ports);
  const names = ports.map(() => `etcd-${randomName()}`);
  const members = names.map((name, index) => `${name}=${peers.urls[index]}`).join(',');
  const starts = await Promise.allSettled(
    names.map(async (name, index) => {
      const ways = { peerPort: ports[index] as number, peerUrl: peers.urls[index] as string };
      const controls = await supervise(plan(binary, { name, members, ...ways, options: {}, plainPort: 0 }));
      return Object.assign(controls, { name, url: `http://${controls.host}:${controls.port}` });
    }),
  );
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  if (nodes.length === NODES) return { nodes, peers };
  await Promise.all(nodes.map((node) => node.stop()));
  await peers.stop();
  // Another process may have taken the port of a peer meanwhile.
  if (triesLeft > 1) return startNodes(binary, triesLeft - 1);
  throw new AggregateError(
    starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : [])),
    'the nodes of an etcd cluster did not start',
  );
}

interface Status {
  readonly header: { readonly member_id: string };
  readonly leader?: string;
}

export async function startEtcdCluster(): Promise<EtcdCluster> {
  const { nodes, peers } = await startNodes(await need('etcd'));
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
    await peers.stop();
  };
  const cutOff: EtcdCluster['cutOff'] = async (node) => {
    const { header } = await ask<Status>(node.url, '/v3/maintenance/status');
    peers.cutOff(nodes.indexOf(node), header.member_id);
  };
  const settle = (): Promise<void> =>
    until('three nodes of etcd answer', SETTLE_MS_MAX, async () =>
      (await Promise.all(nodes.map(({ url }) => isHealthy(url)))).every(Boolean),
    );
  const ranks: EtcdCluster['ranks'] = async () => {
    for (const leader of nodes) {
      const { header, leader: leading } = await ask<Status>(leader.url, '/v3/maintenance/status');
      if (leading !== header.member_id) continue;
      return { leader, followers: nodes.filter((node) => node !== leader) };
    }
    throw new Error('the etcd cluster has no leader now');
  };
  try {
    await settle();
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, ranks, cutOff, heal: peers.heal, settle, stop };
}
