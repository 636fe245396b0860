/** ioredis: a single server, one found through Sentinel, or a Cluster. Described by what is used of it. */
import { type Finding, UnsupportedError } from '../../protocol/index.js';
import {
  type Connection,
  type Heard,
  type Hears,
  ignoreConnectionErrors,
  prefixOf,
  reconnectMs,
  type Server,
  type Subscriber,
  type Verb,
} from './connection.js';
import { Gate, type State } from './gate.js';

interface IoredisOptions {
  readonly keyPrefix?: string | undefined;
  readonly enableOfflineQueue?: boolean | undefined;
  readonly autoResendUnfulfilledCommands?: boolean | undefined;
  readonly maxRetriesPerRequest?: number | null | undefined;
  readonly commandTimeout?: number | undefined;
}

type Run = (...words: (string | number)[]) => Promise<unknown>;

interface IoredisCommon {
  readonly status: string;
  call(command: string, ...words: string[]): Promise<unknown>;
  createBuiltinCommand(name: string): { readonly string: unknown };
  connect(): Promise<unknown>;
  disconnect(): void;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'message', listener: Heard): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'close' | 'ready', listener: () => void): unknown;
  on(event: string | symbol, listener: (error?: unknown) => void): unknown;
  off(event: 'message', listener: Heard): unknown;
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

/** What a connection that only listens needs, whatever the client it is made from was told. */
const LISTENING = {
  lazyConnect: true,
  keyPrefix: '',
  enableOfflineQueue: true,
  autoResubscribe: true,
  // A subscription that is being made again when the connection breaks once more must not be given up.
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  retryStrategy: reconnectMs,
  sentinelRetryStrategy: reconnectMs,
  clusterRetryStrategy: reconnectMs,
  commandTimeout: undefined,
  socketTimeout: undefined,
  enableAutoPipelining: false,
  // A connection that is dead does not answer its end, and would keep the process alive for as long.
  disconnectTimeout: 200,
} as const;

export function ioredisConnection(client: IoredisClient | IoredisCluster): Connection {
  // Made anew, because automatic pipelining takes the first word of a command for its key, here the script's name.
  const run: Readonly<Record<Verb, Run>> = {
    evalsha: builtin(client, 'evalsha'),
    eval: builtin(client, 'eval'),
  };

  async function servers(): Promise<readonly Server[]> {
    if (!isCluster(client)) return [{ send: (command, ...words) => client.call(command, ...words) }];
    // A cluster that nobody used yet knows no servers.
    if (client.nodes('master').length === 0) await client.call('PING');
    return client
      .nodes('master')
      .map((node) => ({ send: (command, ...words) => node.call(command, ...words) }));
  }

  return {
    isCluster: isCluster(client),
    keyPrefix: prefixOf(client.options.keyPrefix),
    gate: Gate.of(client, 'close', {
      state: () => stateOf(client),
      // Of a lazy client, which connects when something is asked of it.
      connect: () => {
        if (client.status === 'wait') client.connect().catch(ignoreConnectionErrors);
      },
    }),
    checkUsable() {
      if (client.status !== 'end') return;
      throw new UnsupportedError('The ioredis client was closed, or gave up connecting: make another one.');
    },
    run: (verb, script, keys, texts) => run[verb](script, keys.length, ...keys, ...texts),
    servers,
    subscriber(heard, hears) {
      const listening = isCluster(client)
        ? client.duplicate([], {
            ...LISTENING,
            redisOptions: { ...client.options.redisOptions, ...LISTENING },
          })
        : client.duplicate({ ...LISTENING, autoResubscribe: false });
      listening.on('error', ignoreConnectionErrors);
      const heeding = ioredisSubscriber(listening, heard, hears);
      return {
        ...heeding,
        ...(isCluster(listening) ? {} : subscribedAgain(listening, hears)),
        connect: () => listening.connect(),
        close: () => listening.disconnect(),
      };
    },
    settings: () => settingsOf(isCluster(client) ? settingsOfNodes(client) : client.options),
  };
}

function stateOf(client: IoredisClient | IoredisCluster): State {
  if (client.status === 'ready') return 'ready';
  return ['wait', 'connecting', 'connect'].includes(client.status) ? 'connecting' : 'broken';
}

/**
 * Subscribes anew whenever the connection is back. ioredis would do that by itself, but nobody would take the error when
 * the connection ends meanwhile, and that would end the process (F8).
 */
function subscribedAgain(
  listening: IoredisClient,
  hears: Hears,
): Pick<Subscriber, 'subscribe' | 'unsubscribe'> {
  const channels = new Set<string>();
  listening.on('ready', () => {
    if (channels.size > 0) listening.subscribe(...channels).then(() => hears(true), ignoreConnectionErrors);
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

/** One that the user opened and closes: only what is heard on it is taken back. */
export function ioredisSubscriber(
  client: IoredisClient | IoredisCluster,
  heard: Heard,
  hears: Hears,
): Subscriber {
  const broke = (): void => hears(false);
  const back = (): void => hears(true);
  client.on('message', heard);
  client.on('close', broke);
  client.on('ready', back);
  return {
    connect: () => Promise.resolve(),
    subscribe: (channel) => client.subscribe(channel),
    unsubscribe: (channel) => client.unsubscribe(channel),
    close: () => {
      client.off('message', heard);
      client.off('close', broke);
      client.off('ready', back);
    },
  };
}

function builtin(client: IoredisClient | IoredisCluster, name: Verb): Run {
  return (client.createBuiltinCommand(name).string as Run).bind(client);
}

/** What is said for its nodes, but for the queue, which is the cluster's own. */
function settingsOfNodes({ options }: IoredisCluster): IoredisOptions {
  const { enableOfflineQueue }: IoredisOptions = options;
  return { ...options.redisOptions, enableOfflineQueue };
}

function settingsOf(options: IoredisOptions): readonly Finding[] {
  const findings: Finding[] = [];
  const note = (text: string): void => void findings.push({ level: 'note', text });
  if (options.enableOfflineQueue !== false) {
    note(
      'ioredis keeps commands while it is disconnected and sends them later (enableOfflineQueue). Locks stay correct, ' +
        'because a late command changes nothing that has ended since; with enableOfflineQueue: false it fails sooner.',
    );
  }
  if (options.autoResendUnfulfilledCommands !== false) {
    note(
      'ioredis sends commands again whose answer was lost (autoResendUnfulfilledCommands). Locks stay correct: the ' +
        'same command again gives the same grant.',
    );
  }
  if (options.maxRetriesPerRequest === null) {
    note(
      'ioredis never gives up a command (maxRetriesPerRequest: null). Holdfast counts an attempt as unanswered after a ' +
        'while all the same, and asks again.',
    );
  }
  if (options.commandTimeout === undefined) {
    note(
      'ioredis has no commandTimeout: commands to a server that hangs stay in memory until the connection ends. ' +
        'Holdfast does not wait for them.',
    );
  }
  return findings;
}
