/** node-redis (the package `redis`): a client, a cluster or a sentinel. Typed by the members that are used. */
import { errorMonitor } from 'node:events';
import { ignore } from '../../protocol/ignore.js';
import { type Finding, InvalidArgumentError, UnsupportedError } from '../../protocol/index.js';
import { note } from '../clients/findings.js';
import type { OnListening } from '../clients/wake-up.js';
import {
  type Connection,
  type OnMessage,
  prefixOf,
  reconnectMs,
  type Server,
  type Subscriber,
} from './connection.js';
import { OfflineGuard } from './offline-guard.js';

interface NodeRedisOptions {
  readonly keyPrefix?: string | Uint8Array | undefined;
  readonly socket?: object | undefined;
  readonly disableOfflineQueue?: boolean | undefined;
  /** Of version 4. */
  readonly legacyMode?: boolean | undefined;
}

interface NodeRedisCommon {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  /** Absent in version 4, which has `disconnect`. */
  destroy?(): unknown;
  disconnect?(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  on(event: string | symbol, listener: (error?: unknown) => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** The result of `createClient`. */
export interface NodeRedisClient extends NodeRedisCommon {
  readonly isReady: boolean;
  readonly options?: NodeRedisOptions | undefined;
  sendCommand(words: string[]): Promise<unknown>;
  duplicate(overrides?: object): NodeRedisClient;
}

/** The result of `createCluster`. */
export interface NodeRedisCluster extends NodeRedisCommon {
  readonly masters: readonly object[];
  nodeClient(node: never): unknown;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    words: string[],
  ): Promise<unknown>;
  duplicate(overrides?: object): NodeRedisCluster;
}

/** The result of `createSentinel`. */
export interface NodeRedisSentinel extends NodeRedisCommon {
  getSentinelNode(): unknown;
  sendCommand(isReadonly: boolean | undefined, words: string[]): Promise<unknown>;
  duplicate(overrides?: object): NodeRedisSentinel;
}

export type NodeRedis = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel;

export function isNodeRedis(client: object): client is NodeRedis {
  const { sendCommand, duplicate, subscribe, isOpen } = client as Partial<NodeRedisClient>;
  const methods = [sendCommand, duplicate, subscribe].every((method) => typeof method === 'function');
  return methods && typeof isOpen === 'boolean';
}

/** In the legacy mode of version 4 replies go to callbacks, and `client.v4` has only the commands of a client. */
export function checkMode(client: NodeRedis, what: string): void {
  if (!optionsOf(client).legacyMode) return;
  throw new InvalidArgumentError(
    `The ${what} is a node-redis client with legacyMode: true, whose commands return no promises. ` +
      'Pass a client of its own: client.duplicate({ legacyMode: false }), connected with connect().',
  );
}

function isCluster(client: NodeRedis): client is NodeRedisCluster {
  return 'nodeClient' in client && 'masters' in client;
}

function isSentinel(client: NodeRedis): client is NodeRedisSentinel {
  return 'getSentinelNode' in client;
}

export function nodeRedisConnection(client: NodeRedis): Connection {
  const keyPrefix = prefixOf(optionsOf(client).keyPrefix);

  function send(firstKey: string | undefined, words: string[]): Promise<unknown> {
    if (isCluster(client)) return client.sendCommand(firstKey, false, words);
    return isSentinel(client) ? client.sendCommand(false, words) : client.sendCommand(words);
  }

  async function servers(): Promise<readonly Server[]> {
    if (!isCluster(client)) return [{ send: (...words) => send(undefined, words) }];
    const nodes = await Promise.all(
      client.masters.map((node) => client.nodeClient(node as never) as Promise<NodeRedisClient>),
    );
    return nodes.map((node) => ({ send: (...words) => node.sendCommand(words) }));
  }

  return {
    isCluster: isCluster(client),
    keyPrefix,
    offlineGuard: offlineGuardOf(client),
    checkUsable() {
      if (client.isOpen) return;
      throw new UnsupportedError(
        'The node-redis client is not connected, or was closed: await client.connect() before using locks.',
      );
    },
    run(verb, script, keys, texts) {
      // `sendCommand` does not add the client's own prefix.
      const full = keyPrefix === '' ? keys : keys.map((key) => keyPrefix + key);
      return send(full[0], [verb, script, String(full.length), ...full, ...texts]);
    },
    servers,
    subscriber(onMessage, onListening) {
      const state = { connected: false };
      const listening = listeningClient(client, state);
      // The client reconnects by itself, and waiters poll meanwhile.
      listening.on('error', ignore);
      return {
        ...nodeRedisSubscriber(listening, onMessage, onListening),
        async connect() {
          await listening.connect();
          state.connected = true;
        },
        async close() {
          if (listening.isOpen) await end(listening);
        },
      };
    },
    settings: () => settingsOf(client),
  };
}

/** Ends a client at once, without waiting for replies. */
export function end(client: Pick<NodeRedisCommon, 'destroy' | 'disconnect'>): unknown {
  return client.destroy ? client.destroy() : client.disconnect?.();
}

/** Only a plain client reports whether it is ready; a cluster and a sentinel do not. */
function offlineGuardOf(client: NodeRedis): OfflineGuard | null {
  if (!('isReady' in client)) return null;
  return OfflineGuard.of(client, errorMonitor, {
    state: () => (client.isReady ? 'ready' : 'connecting'),
    connect: () => undefined,
  });
}

function optionsOf(client: NodeRedis): NodeRedisOptions {
  if (isCluster(client)) return (client as { _options?: NodeRedisOptions })._options ?? {};
  return 'options' in client ? (client.options ?? {}) : {};
}

/** A client for listening. It reconnects for ever once it was connected; before that, the first failure is reported. */
function listeningClient(client: NodeRedis, state: { readonly connected: boolean }): NodeRedis {
  if (isCluster(client)) return client.duplicate({ minimizeConnections: true });
  if (isSentinel(client)) return client.duplicate();
  const reconnectStrategy = (retries: number, cause: Error): number | Error =>
    state.connected ? reconnectMs(retries) : cause;
  return client.duplicate({
    socket: { ...client.options?.socket, reconnectStrategy, socketTimeout: 0 },
    disableOfflineQueue: false,
  });
}

/** Listens on a connection that the user opened and closes. */
export function nodeRedisSubscriber(
  client: NodeRedis,
  onMessage: OnMessage,
  onListening: OnListening,
): Subscriber {
  const listener = (message: string, channel: string): void => onMessage(channel, message);
  const onBroken = (): void => onListening(false);
  const onReady = (): void => onListening(true);
  // A cluster or a sentinel emits neither.
  client.on('reconnecting', onBroken);
  client.on('ready', onReady);
  return {
    connect: () => Promise.resolve(),
    subscribe: (channel) => client.subscribe(channel, listener),
    unsubscribe: (channel) => client.unsubscribe(channel),
    close: () => {
      client.off('reconnecting', onBroken);
      client.off('ready', onReady);
    },
  };
}

function settingsOf(client: NodeRedis): readonly Finding[] {
  // A cluster's options contain those of its nodes as `defaults`.
  const { disableOfflineQueue, defaults }: NodeRedisOptions & { defaults?: NodeRedisOptions } =
    optionsOf(client);
  if (disableOfflineQueue ?? defaults?.disableOfflineQueue) return [];
  return [
    note(
      'node-redis queues commands while it is disconnected and sends them later. Locks stay correct, because a late ' +
        'command cannot revive an ended hold; with disableOfflineQueue: true commands fail sooner.',
    ),
  ];
}
