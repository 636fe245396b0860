/** `nats://` and `nats+tls://`: the store on a connection of its own, and the migration of its bucket. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { layoutNamed } from '../clients/layout.js';
import { createdOnce, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, storeOn } from '../clients/opened-client.js';
import {
  contentOf,
  countIn,
  given,
  hostAndPort,
  parseServerUrl,
  type ServerUrl,
  serversIn,
} from '../clients/url.js';
import { bucketConfig, createBucket, type NatsStoreOptions, natsStore } from './index.js';
import * as layouts from './layouts/index.js';
import { NATS_CLIENTS, type Target } from './open-client.js';

const TLS_FILES = ['tlsca', 'tlscert', 'tlskey'];
/** All but the first two have the names that the nats command gives them. */
const OPTIONS = ['replicas', 'layout', 'token', 'creds', 'nkey', ...TLS_FILES, 'inbox-prefix'];
const PORT = 4222;
/** The most that NATS allows. */
const REPLICAS_MAX = 5;

export interface NatsTarget {
  readonly target: Target;
  readonly options: NatsStoreOptions;
}

export async function openStore(scheme: string, rest: string, clients = NATS_CLIENTS): Promise<Store> {
  const { target, options } = await natsTarget(scheme, rest);
  const open = await loadFirst('NATS', clients);
  // Check the options before connecting.
  bucketConfig(options);
  return storeOn(await open(target), (client) => natsStore(client, options));
}

export async function migrationOf(
  scheme: string,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  refuseOptions(options, ['supabase', 'timeToLive'], scheme);
  const { target, options: wanted } = await natsTarget(scheme, rest);
  const config = bucketConfig(wanted);
  return {
    kind: 'bucket',
    name: config.name.replace(/^KV_/, ''),
    script: JSON.stringify(config, null, 2),
    async apply() {
      const open = await loadFirst('NATS', NATS_CLIENTS);
      return migrateOn(await open(target), 'the bucket was not made', async (client) => {
        const { created } = await createBucket(client, wanted);
        return createdOnce(created);
      });
    },
  };
}

export async function natsTarget(scheme: string, rest: string): Promise<NatsTarget> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT/BUCKET`;
  const url = parseServerUrl(scheme, rest, form, OPTIONS);
  const { options } = url;
  return {
    target: {
      servers: serversIn(url, PORT).map(({ host, port }) => hostAndPort(host, port)),
      tls: await tlsOf(scheme, options),
      inboxPrefix: options.get('inbox-prefix'),
      ...(await loginOf(url)),
    },
    // The store checks the name of the bucket.
    options: given({
      bucket: url.path.replace(/\/$/, '') || undefined,
      replicas: countIn(url, 'replicas', REPLICAS_MAX),
      layout: layoutNamed(layouts, options.get('layout'), 'NATS'),
    }),
  };
}

type Login = Pick<Target, 'user' | 'password' | 'token' | 'credentials' | 'nkey'>;

/** One way to log in. A name alone before the host is a token, as for every NATS client. */
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

async function tlsOf(scheme: string, options: ReadonlyMap<string, string>): Promise<Target['tls']> {
  if (scheme === 'nats') {
    if (!TLS_FILES.some((option) => options.has(option))) return undefined;
    throw new InvalidArgumentError(`${TLS_FILES.join(', ')} need nats+tls:// instead of nats://.`);
  }
  const [ca, cert, key] = await Promise.all(
    TLS_FILES.map((option) => contentOf(option, options.get(option))),
  );
  return given({ ca, cert, key });
}
