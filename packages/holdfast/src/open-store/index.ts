/**
 * From a URL to a store. What a store needs is loaded only when its URL is asked for. What is not understood is
 * refused, option by option: a misspelt one must not be ignored in silence.
 */
import { InvalidArgumentError, type Store } from '../protocol/index.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { openDynamodb } from './dynamodb.js';
import { dynamodbMigration } from './dynamodb-migration.js';
import { openHttp } from './http.js';
import { openMemory, openSqlite } from './local.js';
import type { Migration, MigrationOptions } from './migration.js';
import { openNats } from './nats.js';
import { natsMigration } from './nats-migration.js';
import { openPostgres } from './postgres.js';
import { postgresMigration } from './postgres-migration.js';
import { openRedis } from './redis.js';

export type { AppliedMigration, Migration, MigrationOptions } from './migration.js';

const KNOWN =
  'memory:, sqlite:PATH, redis://HOST, redis+cluster://HOST,HOST, postgres://HOST/DATABASE, ' +
  'dynamodb://REGION/TABLE, nats://HOST/BUCKET or https://HOST of a service';

/**
 * Opens the store that a URL names. A server that cannot be reached is no reason to fail: the store opens, and its
 * commands are answered once the server is there. Closing the store closes the connections made for it.
 */
export async function openStore(url: string): Promise<Store> {
  const { scheme, rest } = schemeOf(url);
  switch (scheme) {
    case 'memory':
      return openMemory(rest);
    case 'sqlite':
      return openSqlite(rest);
    case 'redis':
    case 'rediss':
    case 'redis+cluster':
    case 'rediss+cluster':
      return openRedis(scheme, rest);
    case 'postgres':
    case 'postgresql':
      return openPostgres(scheme, rest);
    case 'dynamodb':
      return openDynamodb(rest);
    case 'nats':
    case 'nats+tls':
      return openNats(scheme, rest);
    case 'http':
    case 'https':
      return openHttp(scheme, rest);
    default:
      throw new InvalidArgumentError(`There is no store for "${scheme}:": expected ${KNOWN}.`);
  }
}

/** What has to be at the server that a URL names before a store can work there: to be printed, or to be applied. */
export async function migrationOf(url: string, options: MigrationOptions = {}): Promise<Migration> {
  checkOptionNames(options, ['supabase', 'timeToLive']);
  const { scheme, rest } = schemeOf(url);
  switch (scheme) {
    case 'postgres':
    case 'postgresql':
      return postgresMigration(scheme, rest, options);
    case 'dynamodb':
      return dynamodbMigration(rest, options);
    case 'nats':
    case 'nats+tls':
      return natsMigration(scheme, rest, options);
    default:
      throw new InvalidArgumentError(
        `There is nothing to migrate for "${scheme}:": only postgres://HOST/DATABASE, dynamodb://REGION/TABLE and nats://HOST/BUCKET have something to be made.`,
      );
  }
}

/** The URL itself is not quoted: there may be a password in it. */
function schemeOf(url: string): { readonly scheme: string; readonly rest: string } {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  if (scheme === undefined || rest === undefined) {
    throw new InvalidArgumentError(`This is not the URL of a store: expected ${KNOWN}.`);
  }
  return { scheme: scheme.toLowerCase(), rest };
}
