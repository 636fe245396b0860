/** ioredis: a single server, a server found through Sentinel, or a Cluster. Its types have the members that are used. */
import { ignore } from '../../protocol/ignore.js';
import { type Finding, UnsupportedError } from '../../protocol/index.js';
import { findingsOf, note } from '../clients/findings.js';
import { KEEP_ALIVE_MS } from '../clients/opened-client.js';
import type { OnListening } from '../clients/wake-up.js';
import {
  type Connection,
  type OnMessage,
  prefixOf,
  reconnectMs,
  type Server,
  type Subscriber,
  type Verb,
} from './connection.js';
import { type ConnectionState, OfflineGuard } from './offline-guard.js';

interface IoredisOptions {
  readonly keyPrefix?: string | undefined;
  readonly enableOfflineQueue?: boolean | undefined;
  readonly autoResendUnfulfilledCommands?: boolean | undefined;
  readonly maxRetriesPerRequest?: number | null | undefined;
  readonly commandTimeout?: number | undefined;
}

type Run = (...words: (string | number | readonly string[])[]) => Promise<unknown>;

interface IoredisCommon {
  readonly status: string;
  call(command: string, ...words: string[]): Promise<unknown>;
  createBuiltinCommand(name: string): { readonly string: unknown };
  connect(): Promise<unknown>;
  disconnect(): void;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'message', listener: OnMessage): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'close' | 'ready', listener: () => void): unknown;
  on(event: string | symbol, listener: (error?: unknown) => void): unknown;
  off(event: 'message', listener: OnMessage): unknown;
  off(event: 'close' | 'ready', listener: () => void): unknown;
}

/** A `Redis` of ioredis. */
export interface IoredisClient extends IoredisCommon {
  readonly options: IoredisOptions;
  duplicate(override?: object): IoredisClient;
}

/** A `Cluster` of ioredis. */
export interface IoredisCluster extends IoredisCommon {
  readonly isCluster: boolean;
  readonly options: {
    readonly redisOptions?: IoredisOptions | undefined;
    readonly keyPrefix?: string | undefined;
  };
  nodes(role: 'master'): { call(command: string, ...words: string[]): Promise<unknown> }[];
  duplicate(startupNodes?: [], override?: object): IoredisCluster;
}

export function isIoredis(client: object): client is IoredisClient | IoredisCluster {
  const { call, createBuiltinCommand, duplicate } = client as Partial<IoredisClient>;
  return [call, createBuiltinCommand, duplicate].every((method) => typeof method === 'function');
}

function isCluster(client: IoredisClient | IoredisCluster): client is IoredisCluster {
  return 'isCluster' in client && client.isCluster;
}

/** Options of a connection that only listens. They replace those of the original. */
const LISTENING_OPTIONS = {
  lazyConnect: true,
  keyPrefix: '',
  enableOfflineQueue: true,
  autoResubscribe: true,
  // Otherwise a subscription in progress is given up when the connection breaks again.
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  retryStrategy: reconnectMs,
  sentinelRetryStrategy: reconnectMs,
  clusterRetryStrategy: reconnectMs,
  commandTimeout: undefined,
  socketTimeout: undefined,
  enableAutoPipelining: false,
  // The connection is idle for long: without keep-alives, a network may drop it without notice.
  keepAlive: KEEP_ALIVE_MS,
  // A dead connection does not answer the end of the connection, and would keep the process alive.
  disconnectTimeout: 200,
} as const;

export function ioredisConnection(client: IoredisClient | IoredisCluster): Connection {
  // Not the client's own methods: automatic pipelining would take the script's name for the key.
  const run: Readonly<Record<Verb, Run>> = {
    evalsha: builtin(client, 'evalsha'),
    eval: builtin(client, 'eval'),
  };

  async function servers(): Promise<readonly Server[]> {
    if (!isCluster(client)) return [{ send: (command, ...words) => client.call(command, ...words) }];
    // A cluster client that was not used yet knows no servers.
    if (client.nodes('master').length === 0) await client.call('PING');
    return client
      .nodes('master')
      .map((node) => ({ send: (command, ...words) => node.call(command, ...words) }));
  }

  return {
    isCluster: isCluster(client),
    keyPrefix: prefixOf(client.options.keyPrefix),
    offlineGuard: OfflineGuard.of(client, 'close', {
      state: () => stateOf(client),
      // A lazy client connects with its first command.
      connect: () => {
        // An error event gives the reason to the guard.
        if (client.status === 'wait') client.connect().catch(ignore);
      },
    }),
    checkUsable() {
      if (client.status !== 'end') return;
      throw new UnsupportedError('The ioredis client was closed, or gave up connecting: create a new one.');
    },
    // ioredis flattens lists of arguments.
    run: (verb, script, keys, words) => run[verb](script, keys.length, keys, words),
    servers,
    subscriber(onMessage, onListening) {
      const listening = isCluster(client)
        ? client.duplicate([], {
            ...LISTENING_OPTIONS,
            redisOptions: { ...client.options.redisOptions, ...LISTENING_OPTIONS },
          })
        : client.duplicate({ ...LISTENING_OPTIONS, autoResubscribe: false });
      // The client reconnects by itself, and waiters poll meanwhile.
      listening.on('error', ignore);
      const subscriber = ioredisSubscriber(listening, onMessage, onListening);
      return {
        ...subscriber,
        ...(isCluster(listening) ? {} : resubscribing(listening, onListening)),
        connect: () => listening.connect(),
        close: () => listening.disconnect(),
      };
    },
    settings: () => settingsOf(isCluster(client) ? settingsOfNodes(client) : client.options),
  };
}

function stateOf(client: IoredisClient | IoredisCluster): ConnectionState {
  if (client.status === 'ready') return 'ready';
  return ['wait', 'connecting', 'connect'].includes(client.status) ? 'connecting' : 'broken';
}

/**
 * Subscribes again whenever the connection is back. ioredis can do that by itself, but when the connection ends
 * meanwhile, its error is unhandled and ends the process (F8).
 */
function resubscribing(
  listening: IoredisClient,
  onListening: OnListening,
): Pick<Subscriber, 'subscribe' | 'unsubscribe'> {
  const channels = new Set<string>();
  listening.on('ready', () => {
    // If it fails, the connection is lost again.
    if (channels.size > 0) listening.subscribe(...channels).then(() => onListening(true), ignore);
  });
  return {
    subscribe(channel) {
      channels.add(channel);
      return listening.subscribe(channel);
    },
    unsubscribe(channel) {
      channels.delete(channel);
      return listening.unsubscribe(channel);
    },
  };
}

/** On a connection that the user opened and closes: `close` only removes the listeners. */
export function ioredisSubscriber(
  client: IoredisClient | IoredisCluster,
  onMessage: OnMessage,
  onListening: OnListening,
): Subscriber {
  const onClose = (): void => onListening(false);
  const onReady = (): void => onListening(true);
  client.on('message', onMessage);
  client.on('close', onClose);
  client.on('ready', onReady);
  return {
    connect: () => Promise.resolve(),
    subscribe: (channel) => client.subscribe(channel),
    unsubscribe: (channel) => client.unsubscribe(channel),
    close: () => {
      client.off('message', onMessage);
      client.off('close', onClose);
      client.off('ready', onReady);
    },
  };
}

function builtin(client: IoredisClient | IoredisCluster, name: Verb): Run {
  return (client.createBuiltinCommand(name).string as Run).bind(client);
}

/** The options of the nodes, except for the offline queue, which belongs to the cluster client. */
function settingsOfNodes({ options }: IoredisCluster): IoredisOptions {
  const { enableOfflineQueue }: IoredisOptions = options;
  return { ...options.redisOptions, enableOfflineQueue };
}

function settingsOf(options: IoredisOptions): readonly Finding[] {
  const notes = [
    options.enableOfflineQueue !== false &&
      'ioredis queues commands while it is disconnected and sends them later (enableOfflineQueue). Locks stay correct, ' +
        'because a late command cannot revive an ended hold; with enableOfflineQueue: false commands fail sooner.',
    options.autoResendUnfulfilledCommands !== false &&
      'ioredis sends a command again when its reply was lost (autoResendUnfulfilledCommands). Locks stay correct: ' +
        'the same command gives the same grant.',
    options.maxRetriesPerRequest === null &&
      'ioredis never gives up a command (maxRetriesPerRequest: null). Holdfast still counts an attempt as unanswered ' +
        'after its time, and asks again.',
    options.commandTimeout === undefined &&
      'ioredis has no commandTimeout: commands to a server that hangs stay in memory until the connection ends. ' +
        'Holdfast does not wait for them.',
  ];
  return findingsOf(...notes.map((text) => text !== false && note(text)));
}
