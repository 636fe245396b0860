/**
 * Redis clients made for locks: a command that cannot be sent now fails now, and is neither kept nor sent again behind
 * the engine's back, which asks again by itself. An error event that nobody listens to would end the process, so
 * somebody does.
 */
import { systemClock } from '../clock.js';
import type { RedisClient } from '../stores/redis/index.js';
import { type Candidate, importError } from './client-package.js';
import type { Connection } from './connection.js';

const CONNECT_MS_MAX = 2_000;
/** The same for a server that takes the connection and then says nothing. */
const FIRST_MS_MAX = 4_000;
/** The engine waits far less; this is when the client forgets, so that the dead do not pile up in it. */
const COMMAND_MS_MAX = 3_000;
/** A server that vanished without a word is noticed after so long without an answer to what was sent. */
const SILENCE_MS_MAX = 5_000;
const RECONNECT_MS_MAX = 1_000;
const KEEP_ALIVE_MS = 10_000;
const DISCONNECT_MS_MAX = 200;
const PING_MS = 2_000;

export interface Target {
  readonly cluster: boolean;
  readonly tls: boolean;
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

export interface OpenedClient {
  readonly client: RedisClient;
  readonly connection: Connection;
}

export type Opener = (target: Target) => Promise<OpenedClient>;

export const REDIS_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: 'ioredis',
    async load() {
      const { Redis, Cluster } = await importIoredis();
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
              // A certificate is for the name, not for the address that it stands for.
              ...(target.tls ? { dnsLookup: (name, found) => found(null, name) } : {}),
            })
          : new Redis({
              ...options,
              ...first,
              lazyConnect: true,
              enableOfflineQueue: false,
              retryStrategy: reconnectMs,
            });
        const trouble = await connected(client);
        const end = async (): Promise<void> => client.disconnect();
        return { client, connection: { where: whereOf(target), trouble, end } };
      };
    },
  },
  {
    name: 'redis',
    async load() {
      const { createClient, createCluster } = await importRedis();
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
          : createClient({ ...options, socket: { ...options.socket, ...first }, database: target.database });
        const trouble = await connected(client);
        const end = async (): Promise<void> => {
          ending.abort();
          client.destroy();
        };
        return { client, connection: { where: whereOf(target), trouble, end } };
      };
    },
  },
];

async function importIoredis() {
  try {
    return await import('ioredis');
  } catch (error) {
    throw importError('ioredis', error);
  }
}

async function importRedis() {
  try {
    return await import('redis');
  } catch (error) {
    throw importError('redis', error);
  }
}

function ioredisOptions({ tls, username, password, database }: Target) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    db: database,
    connectionName: 'holdfast',
    connectTimeout: CONNECT_MS_MAX,
    commandTimeout: COMMAND_MS_MAX,
    socketTimeout: SILENCE_MS_MAX,
    keepAlive: KEEP_ALIVE_MS,
    // A connection that is dead does not answer its end; the process would live on for as long.
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
  // Also for a server that takes the connection and says nothing: the client would wait for ever, even once it is ended.
  const socket = { connectTimeout: CONNECT_MS_MAX, socketTimeout: SILENCE_MS_MAX, reconnectStrategy };
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    name: 'holdfast',
    disableOfflineQueue: true,
    // Else a connection that is merely not in use would count as silent.
    pingInterval: PING_MS,
    socket: tls ? { ...socket, tls: true as const } : socket,
  };
}

/**
 * A cluster of node-redis tries its nodes once, and is closed for good when none is there. This one tries again until
 * the signal, and is open all the while: what is asked of it meanwhile fails, and may be asked again.
 */
function persistent<C extends { connect(): Promise<unknown> }>(cluster: C, signal: AbortSignal): C {
  const connectOnce = cluster.connect.bind(cluster);
  async function connect(): Promise<unknown> {
    for (let attempts = 0; !signal.aborted; attempts += 1) {
      try {
        return await connectOnce();
      } catch (error) {
        // It has told the reason by an event already.
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

function whereOf({ addresses, tls }: Target): string {
  const names = addresses.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `${names.join(', ')}${tls ? ' over TLS' : ''}`;
}

interface Connecting {
  connect(): Promise<unknown>;
  on(event: 'error', heard: (error: Error) => void): unknown;
  on(event: 'ready' | 'node-ready', heard: () => void): unknown;
}

/**
 * Waits for the first connection, or for word that there is none now; further attempts are the client's own. From then
 * on the function returned tells why there is no connection, for as long as there is none.
 */
async function connected(client: Connecting): Promise<() => unknown> {
  let trouble: unknown = null;
  await new Promise<void>((resolve) => {
    const timer = systemClock.timer(FIRST_MS_MAX, () =>
      note(new Error('it took the connection and is silent')),
    );
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    const note = (error: unknown): void => {
      trouble = error;
      done();
    };
    client.on('error', note);
    const forget = (): void => {
      trouble = null;
    };
    client.on('ready', forget);
    // A cluster of node-redis says it of every node, and never of itself.
    client.on('node-ready', forget);
    // node-redis keeps this promise until it has succeeded, however long that takes. An event has said more than a
    // cluster of ioredis says here.
    client.connect().then(done, (error: unknown) => note(trouble ?? error));
  });
  return () => trouble;
}
