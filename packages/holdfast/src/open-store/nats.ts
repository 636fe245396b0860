/** `nats://` and `nats+tls://`: from the URL to a connection and a store on it. */
import { readFile } from 'node:fs/promises';
import { InvalidArgumentError, type Store } from '../protocol/index.js';
import type { NatsStoreOptions } from '../stores/nats/index.js';
import { loadFirst } from './client-package.js';
import { attended } from './connection.js';
import { NATS_CLIENTS, type Target } from './nats-client.js';
import { checkedCount } from './option-values.js';
import { type Address, parseServerUrl, type ServerUrl } from './url.js';

export type NatsScheme = 'nats' | 'nats+tls';

const TLS_FILES = ['tlsca', 'tlscert', 'tlskey'];
/** All but the first two are as the nats command knows them. */
const OPTIONS = ['replicas', 'layout', 'token', 'creds', 'nkey', ...TLS_FILES, 'inbox-prefix'];
const PORT = 4222;
/** More than these NATS does not have. */
const REPLICAS_MAX = 5;

export interface NatsTarget {
  readonly target: Target;
  readonly options: NatsStoreOptions;
}

export async function openNats(scheme: NatsScheme, rest: string, clients = NATS_CLIENTS): Promise<Store> {
  const { target, options } = await natsTarget(scheme, rest);
  const open = await loadFirst('NATS', clients);
  const { bucketConfig, natsStore } = await import('../stores/nats/index.js');
  // What is wrong with them is said at once, and not after a connection.
  bucketConfig(options);
  const { client, connection } = await open(target);
  try {
    return attended(natsStore(client, options), connection);
  } catch (error) {
    await connection.end();
    throw error;
  }
}

export async function natsTarget(scheme: NatsScheme, rest: string): Promise<NatsTarget> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT/BUCKET`;
  const url = parseServerUrl(scheme, rest, form, OPTIONS);
  const { options } = url;
  const layout = options.get('layout');
  const replicas = options.get('replicas');
  const bucket = url.path.replace(/\/$/, '');
  return {
    target: {
      servers: (url.addresses.length === 0 ? [{ host: '', port: null }] : url.addresses).map(whole),
      tls: await tlsOf(scheme, options),
      inboxPrefix: options.get('inbox-prefix'),
      ...(await loginOf(url)),
    },
    // What a bucket may be called, and which layouts there are, is the store's to check.
    options: {
      ...(bucket === '' ? {} : { bucket }),
      ...(replicas === undefined ? {} : { replicas: checkedCount('replicas', replicas, REPLICAS_MAX) }),
      ...(layout === undefined ? {} : { layout: layout as NonNullable<NatsStoreOptions['layout']> }),
    },
  };
}

function whole({ host, port }: Address): string {
  const name = host.includes(':') ? `[${host}]` : host || 'localhost';
  return `${name}:${port ?? PORT}`;
}

type Login = Pick<Target, 'user' | 'password' | 'token' | 'credentials' | 'nkey'>;

/** One way to log in. What stands alone before the host is a token, as for every NATS client. */
async function loginOf({ user, password, options }: ServerUrl): Promise<Login> {
  const alone = password === null ? (user ?? undefined) : undefined;
  const ways = [user, options.get('token'), options.get('creds'), options.get('nkey')];
  if (ways.filter((way) => way != null).length > 1) {
    throw new InvalidArgumentError(
      'There is one way to log in: USER:PASSWORD@ or TOKEN@ before the host, or one of the options token, creds, nkey.',
    );
  }
  return {
    user: alone === undefined ? (user ?? undefined) : undefined,
    password: password ?? undefined,
    token: alone ?? options.get('token'),
    credentials: await contentOf('creds', options.get('creds')),
    nkey: await contentOf('nkey', options.get('nkey')),
  };
}

async function tlsOf(scheme: NatsScheme, options: ReadonlyMap<string, string>): Promise<Target['tls']> {
  if (scheme === 'nats') {
    if (!TLS_FILES.some((option) => options.has(option))) return undefined;
    throw new InvalidArgumentError(`${TLS_FILES.join(', ')} need nats+tls:// instead of nats://.`);
  }
  const [ca, cert, key] = await Promise.all(
    TLS_FILES.map((option) => contentOf(option, options.get(option))),
  );
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

async function contentOf(option: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`The file that ${option} names cannot be read: ${why}`, { cause });
  }
}
