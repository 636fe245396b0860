/**
 * Opens a store from its URL. Each store's folder has a `from-url.ts`, which is loaded on demand, with the client that it
 * needs. Unknown schemes and options are refused: a misspelt option must not be ignored.
 */
import { InvalidArgumentError, type Store } from './protocol/index.js';
import { show } from './protocol/names.js';
import { checkOptionNames } from './protocol/option-names.js';
import type { Migration, MigrationOptions } from './stores/clients/migration.js';

export type { AppliedMigration, Migration, MigrationOptions } from './stores/clients/migration.js';

/** The `from-url.ts` of a store. `rest` is the URL without scheme and colon. */
interface FromUrl {
  openStore(scheme: string, rest: string): Promise<Store>;
  /** Absent if the store needs no schema at the server. */
  migrationOf?(scheme: string, rest: string, options: MigrationOptions): Promise<Migration>;
}

const redis = (): Promise<FromUrl> => import('./stores/redis/from-url.js');
const quorum = (): Promise<FromUrl> => import('./stores/quorum/from-url.js');
const postgres = (): Promise<FromUrl> => import('./stores/postgres/from-url.js');
const firestore = (): Promise<FromUrl> => import('./stores/firestore/from-url.js');
const mysql = (): Promise<FromUrl> => import('./stores/mysql/from-url.js');
const nats = (): Promise<FromUrl> => import('./stores/nats/from-url.js');
const etcd = (): Promise<FromUrl> => import('./stores/etcd/from-url.js');
const http = (): Promise<FromUrl> => import('./stores/http/from-url.js');

const SCHEMES: ReadonlyMap<string, () => Promise<FromUrl>> = new Map([
  ['memory', async () => ({ openStore: openMemory })],
  ['sqlite', () => import('./stores/sqlite/from-url.js')],
  ['redis', redis],
  ['rediss', redis],
  ['redis+cluster', redis],
  ['rediss+cluster', redis],
  ['redis+unix', redis],
  ['valkey', redis],
  ['valkeys', redis],
  ['valkey+cluster', redis],
  ['valkeys+cluster', redis],
  ['valkey+unix', redis],
  ['redis-quorum', quorum],
  ['rediss-quorum', quorum],
  ['valkey-quorum', quorum],
  ['valkeys-quorum', quorum],
  ['postgres', postgres],
  ['postgresql', postgres],
  ['mysql', mysql],
  ['mariadb', mysql],
  ['dynamodb', () => import('./stores/dynamodb/from-url.js')],
  ['firestore', firestore],
  ['nats', nats],
  ['nats+tls', nats],
  ['etcd', etcd],
  ['etcds', etcd],
  ['http', http],
  ['https', http],
]);

const KNOWN =
  'memory:, sqlite:PATH, redis://HOST, redis+cluster://HOST,HOST, redis+unix:///SOCKET, redis-quorum://HOST,HOST,HOST, valkey://HOST, postgres://HOST/DATABASE, ' +
  'mysql://HOST/DATABASE, dynamodb://REGION/TABLE, firestore://PROJECT/COLLECTION, nats://HOST/BUCKET, etcd://HOST,HOST/PREFIX ' +
  'or https://HOST of a service';

/**
 * Opens the store that a URL names. An unreachable server is not an error: the store opens, and its commands are answered
 * once the server is there. Closing the store closes the connections made for it.
 */
export async function openStore(url: string): Promise<Store> {
  const { scheme, rest } = schemeOf(url);
  const load = SCHEMES.get(scheme);
  if (!load) throw new InvalidArgumentError(`There is no store for "${scheme}:": expected ${KNOWN}.`);
  return (await load()).openStore(scheme, rest);
}

/** The schema, table or bucket that the store of a URL needs at its server: to be printed, or applied. */
export async function migrationOf(url: string, options: MigrationOptions = {}): Promise<Migration> {
  checkOptionNames(options, ['supabase', 'timeToLive']);
  const { scheme, rest } = schemeOf(url);
  const fromUrl = await SCHEMES.get(scheme)?.();
  if (!fromUrl?.migrationOf) {
    throw new InvalidArgumentError(
      `There is nothing to migrate for "${scheme}:": only postgres://HOST/DATABASE, mysql://HOST/DATABASE, dynamodb://REGION/TABLE, nats://HOST/BUCKET and redis-quorum://HOST,HOST,HOST need something at the server.`,
    );
  }
  return fromUrl.migrationOf(scheme, rest, options);
}

/** Messages never quote the URL: it may contain a password. */
function schemeOf(url: string): { readonly scheme: string; readonly rest: string } {
  if (typeof url !== 'string') {
    throw new InvalidArgumentError(
      `The URL of the store is ${show(url)}, but has to be a string, such as 'redis://HOST' or 'sqlite:PATH'.`,
    );
  }
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  if (scheme === undefined || rest === undefined) {
    throw new InvalidArgumentError(`This is not the URL of a store: expected ${KNOWN}.`);
  }
  return { scheme: scheme.toLowerCase(), rest };
}

async function openMemory(_scheme: string, rest: string): Promise<Store> {
  if (rest !== '') throw new InvalidArgumentError(`"memory:" is the whole URL, without "${rest}".`);
  const { memoryStore } = await import('./stores/memory.js');
  return memoryStore();
}
