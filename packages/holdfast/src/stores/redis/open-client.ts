/**
 * Redis clients set up for locks. A command that cannot be sent fails at once; the client neither queues nor repeats it,
 * since the engine retries. Every client has an `error` listener: an unhandled error event would end the process.
 */
import { systemClock } from '../../clock.js';
import {
  type Candidate,
  CONNECT_MS_MAX,
  importError,
  KEEP_ALIVE_MS,
  type OpenedClient,
  PING_MS,
} from '../clients/opened-client.js';
import { given, hostAndPort, type Server } from '../clients/url.js';
import type { RedisClient } from './index.js';
import { end as endNodeRedis } from './node-redis.js';

/** The limit for a server that accepts the connection and stays silent. */
const FIRST_MS_MAX = 4_000;
/** The engine waits far less; this limits the memory of the client. */
const COMMAND_MS_MAX = 3_000;
/** A server that vanished without closing the connection is noticed after this long without an answer. */
const SILENCE_MS_MAX = 5_000;
const RECONNECT_MS_MAX = 1_000;
const DISCONNECT_MS_MAX = 200;

export interface Target {
  readonly cluster: boolean;
  /** The path of a Unix socket, instead of an address. */
  readonly socket: string | undefined;
  readonly tls: boolean;
  readonly addresses: readonly Server[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

export type Opener = (target: Target) => Promise<OpenedClient<RedisClient>>;

export const REDIS_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: 'ioredis',
    load: async () => ioredisOpener(await importIoredis()),
  },
  {
    name: 'redis',
    load: async () => nodeRedisOpener(await importRedis()),
  },
  {
    // Valkey's fork of ioredis, with the same classes and options.
    name: 'iovalkey',
    load: async () => ioredisOpener((await importIovalkey()) as unknown as IoredisModule),
  },
];

type NodeRedisModule = Pick<typeof import('redis'), 'createClient' | 'createCluster'>;

type IoredisModule = Pick<Awaited<ReturnType<typeof importIoredis>>, 'Redis' | 'Cluster'>;

function ioredisOpener({ Redis, Cluster }: IoredisModule): Opener {
  return async (target) => {
    const options = ioredisOptions(target);
    const [first] = target.addresses;
    const client = target.cluster
      ? new Cluster([...target.addresses], {
          lazyConnect: true,
          enableOfflineQueue: false,
          clusterRetryStrategy: reconnectMs,
          slotsRefreshTimeout: CONNECT_MS_MAX,
          redisOptions: options,
          // Certificates are issued for names, not for addresses.
          ...(target.tls ? { dnsLookup: (name, found) => found(null, name) } : {}),
        })
      : new Redis({
          ...options,
          ...(target.socket === undefined ? first : { path: target.socket }),
          lazyConnect: true,
          enableOfflineQueue: false,
          retryStrategy: reconnectMs,
        });
    const error = await connected(client);
    const end = async (): Promise<void> => client.disconnect();
    return { client, connection: { where: whereOf(target), error, end } };
  };
}

/** Version 4 has the same functions and options. */
export function nodeRedisOpener({ createClient, createCluster }: NodeRedisModule): Opener {
  return async (target) => {
    const ending = new AbortController();
    const { signal } = ending;
    const options = nodeRedisOptions(target, signal);
    const [first] = target.addresses;
    const client = target.cluster
      ? persistent(
          createCluster({
            rootNodes: target.addresses.map((address) => ({ socket: address })),
            defaults: options,
          }),
          signal,
        )
      : createClient({
          ...options,
          socket: {
            ...options.socket,
            ...(target.socket === undefined ? first : { path: target.socket }),
          },
          database: target.database,
        });
    const error = await connected(client);
    const end = async (): Promise<void> => {
      ending.abort();
      await endNodeRedis(client);
    };
    return { client, connection: { where: whereOf(target), error, end } };
  };
}

async function importIoredis() {
  try {
    return await import('ioredis');
  } catch (error) {
    throw importError('ioredis', error);
  }
}

async function importIovalkey() {
  try {
    return await import('iovalkey');
  } catch (error) {
    throw importError('iovalkey', error);
  }
}

async function importRedis(): Promise<typeof import('redis')> {
  try {
    return await import('redis');
  } catch (error) {
    throw importError('redis', error);
  }
}

function ioredisOptions({ tls, username, password, database }: Target) {
  return {
    ...given({ username, password }),
    ...(tls ? { tls: {} } : {}),
    db: database,
    connectionName: 'holdfast',
    connectTimeout: CONNECT_MS_MAX,
    commandTimeout: COMMAND_MS_MAX,
    socketTimeout: SILENCE_MS_MAX,
    keepAlive: KEEP_ALIVE_MS,
    // A dead connection does not answer its end, and would keep the process alive.
    disconnectTimeout: DISCONNECT_MS_MAX,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the old master, still connected, is a replica.
    reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
  };
}

function nodeRedisOptions({ tls, username, password }: Target, signal: AbortSignal) {
  const reconnectStrategy = (attempts: number): number | Error =>
    signal.aborted ? new Error('The store is closed.') : reconnectMs(attempts);
  // Also for a server that accepts the connection and stays silent: the client would wait for ever, even when ended.
  const socket = { connectTimeout: CONNECT_MS_MAX, socketTimeout: SILENCE_MS_MAX, reconnectStrategy };
  return {
    ...given({ username, password }),
    name: 'holdfast',
    disableOfflineQueue: true,
    // Without pings an unused connection would count as silent.
    pingInterval: PING_MS,
    socket: tls ? { ...socket, tls: true as const } : socket,
  };
}

/**
 * A cluster client of node-redis tries its nodes once, and is closed for good when none answers. This client tries until
 * the signal aborts, and counts as open: commands fail meanwhile, and may be sent again.
 */
function persistent<C extends { connect(): Promise<unknown> }>(cluster: C, signal: AbortSignal): C {
  const connectOnce = cluster.connect.bind(cluster);
  async function connect(): Promise<unknown> {
    for (let attempts = 0; !signal.aborted; attempts += 1) {
      try {
        return await connectOnce();
      } catch (error) {
        // An error event has reported the reason.
        if (!(error instanceof Error)) throw error;
        await pause(reconnectMs(attempts), signal);
      }
    }
    return cluster;
  }
  return Object.defineProperties(cluster, {
    connect: { value: connect },
    isOpen: { get: () => !signal.aborted },
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = systemClock.timer(ms, done);
    signal.addEventListener('abort', done);
  });
}

function reconnectMs(attempts: number): number {
  return Math.min(50 * 2 ** Math.min(attempts, 10), RECONNECT_MS_MAX);
}

function whereOf({ addresses, socket, tls }: Target): string {
  if (socket !== undefined) return socket;
  const names = addresses.map(({ host, port }) => hostAndPort(host, port));
  return `${names.join(', ')}${tls ? ' over TLS' : ''}`;
}

interface Connecting {
  connect(): Promise<unknown>;
  on(event: 'error', heard: (error: Error) => void): unknown;
  on(event: 'ready' | 'node-ready', heard: () => void): unknown;
}

/**
 * Waits for the first connection or the first failure; the client itself makes further attempts. The returned function
 * says why there is no connection, or null while there is one.
 */
async function connected(client: Connecting): Promise<() => unknown> {
  let failure: unknown = null;
  await new Promise<void>((resolve) => {
    const timer = systemClock.timer(FIRST_MS_MAX, () =>
      note(new Error('it accepted the connection but does not answer')),
    );
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    const note = (error: unknown): void => {
      failure = error;
      done();
    };
    client.on('error', note);
    const forget = (): void => {
      failure = null;
    };
    client.on('ready', forget);
    // A cluster of node-redis reports it per node, never for itself.
    client.on('node-ready', forget);
    // node-redis settles this promise only on success. A cluster of ioredis says more in its error event.
    client.connect().then(done, (error: unknown) => note(failure ?? error));
  });
  return () => failure;
}
