/**
 * `redis://`, `rediss://`, `redis+cluster://`, `rediss+cluster://` and `redis+unix://`, and the same with `valkey` for
 * `redis`: from the URL to a client and a store on it.
 */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { loadFirst, storeOn } from '../clients/opened-client.js';
import { given, parseServerUrl, serversIn } from '../clients/url.js';
import { type RedisStoreOptions, redisStore } from './index.js';
import { REDIS_CLIENTS, type Target } from './open-client.js';

const OPTIONS = ['prefix'];
const SOCKET_OPTIONS = ['prefix', 'database'];
const PORT = 6379;
const DATABASE_MAX = 9_999;

export interface RedisTarget {
  readonly target: Target;
  readonly options: Pick<RedisStoreOptions, 'prefix'>;
}

export async function openStore(scheme: string, rest: string, clients = REDIS_CLIENTS): Promise<Store> {
  const { target, options } = redisTarget(scheme, rest);
  const open = await loadFirst('Redis', clients);
  return storeOn(await open(target), (client) => redisStore(client, options));
}

export function redisTarget(scheme: string, rest: string): RedisTarget {
  if (scheme.endsWith('+unix')) return socketTarget(scheme, rest);
  const cluster = scheme.endsWith('+cluster');
  const form = cluster
    ? `${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT`
    : `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
  const url = parseServerUrl(scheme, rest, form, OPTIONS);
  if (!cluster && url.addresses.length > 1) {
    throw new InvalidArgumentError(
      `${scheme}: takes one host; for a cluster write ${scheme}+cluster://HOST,HOST.`,
    );
  }
  return {
    target: {
      cluster,
      socket: undefined,
      tls: /^(?:rediss|valkeys)\b/.test(scheme),
      addresses: serversIn(url, PORT),
      username: url.user ?? undefined,
      password: url.password ?? undefined,
      database: databaseOf(url.path, cluster),
    },
    options: given({ prefix: url.options.get('prefix') }),
  };
}

/** The path of the socket is the path of the URL: `redis+unix:///run/redis.sock`. */
function socketTarget(scheme: string, rest: string): RedisTarget {
  const form = `${scheme}://USER:PASSWORD@/PATH/TO/SOCKET?database=NUMBER`;
  const url = parseServerUrl(scheme, rest, form, SOCKET_OPTIONS);
  if (url.addresses.length > 0 || url.path === '') {
    throw new InvalidArgumentError(
      `This ${scheme}: URL is invalid: expected ${form}, with no host before the path.`,
    );
  }
  return {
    target: {
      cluster: false,
      socket: `/${url.path}`,
      tls: false,
      addresses: [],
      username: url.user ?? undefined,
      password: url.password ?? undefined,
      database: databaseOf(url.options.get('database') ?? '', false),
    },
    options: given({ prefix: url.options.get('prefix') }),
  };
}

function databaseOf(path: string, cluster: boolean): number {
  const text = path.replace(/\/$/, '');
  if (!/^\d*$/.test(text) || Number(text) > DATABASE_MAX) {
    throw new InvalidArgumentError(
      'The path of a redis: URL is a database number, as in /2, or empty. For a socket, use ?database=2.',
    );
  }
  if (cluster && Number(text) !== 0)
    throw new InvalidArgumentError('A Redis Cluster has database 0 and no other.');
  return Number(text);
}
