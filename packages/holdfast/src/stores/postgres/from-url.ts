/** `postgres://` and `postgresql://`: the store on a pool of its own, and the migration of its schema. */
import { checkServerIdentity } from 'node:tls';
import { InvalidArgumentError, type Store, StoreError } from '../../protocol/index.js';
import { type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, STATEMENT_MS_MAX, storeOn } from '../clients/opened-client.js';
import { contentOf, given, parseServerUrl } from '../clients/url.js';
import { migrate, migrationSql, type PostgresStoreOptions, postgresStore } from './index.js';
import { POSTGRES_CLIENTS, type Target, type Tls } from './open-client.js';
import { SCHEMA } from './sql/names.js';
import { placeOf } from './tables/options.js';

/** All but the first three have the names and meaning that psql gives them. */
const OPTIONS = [
  'schema',
  'layout',
  'table',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'connect_timeout',
  'host',
];
const SSL_MODES = ['disable', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const;
/** Less than the 5 s after which a read of a key gives up, so that the caller learns the reason. */
const CONNECT_MS_DEFAULT = 3_000;
const CONNECT_SECONDS_MAX = 60;
/** Statements are short, and commands due at the same moment share one. Listening has one more connection. */
const CONNECTIONS = 5;
const COLUMN_ADDED = 'A table that was there got the column "holdfast", and nothing else was changed.';
const SUPABASE_RIGHTS =
  'Rights on these tables and functions were given to service_role, and taken from anon, authenticated and PUBLIC.';

export interface PostgresTarget {
  readonly target: Target;
  readonly options: Pick<PostgresStoreOptions, 'schema' | 'layout' | 'table'>;
}

export async function openStore(scheme: string, rest: string, clients = POSTGRES_CLIENTS): Promise<Store> {
  const { target, options } = await postgresTarget(scheme, rest);
  const open = await loadFirst('PostgreSQL', clients);
  const opened = open(target, { connections: CONNECTIONS, statementMsMax: STATEMENT_MS_MAX });
  return storeOn(opened, (client) => postgresStore(client, options));
}

export async function migrationOf(
  scheme: string,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  refuseOptions(options, ['timeToLive'], scheme);
  const { target, options: place } = await postgresTarget(scheme, rest);
  const wanted = { ...place, supabase: options.supabase ?? false };
  const table = placeOf(place);
  return {
    kind: table ? 'table' : 'schema',
    name: table ? `${table.schema}.${table.table}` : (place.schema ?? SCHEMA),
    script: migrationSql(wanted),
    async apply() {
      const open = await loadFirst('PostgreSQL', POSTGRES_CLIENTS);
      // Another process may be migrating: wait for it without limit.
      const opened = open(target, { connections: 1, statementMsMax: null });
      return migrateOn(opened, 'nothing was migrated', async (client) => {
        const migrated = await migrate(client, wanted).catch((error: unknown) => {
          throw error instanceof StoreError ? (error.cause ?? error) : error;
        });
        if (table) return { ...migrated, notes: migrated.from === 0 ? [COLUMN_ADDED] : [] };
        return { ...migrated, notes: wanted.supabase ? [SUPABASE_RIGHTS] : [] };
      });
    },
  };
}

export async function postgresTarget(scheme: string, rest: string): Promise<PostgresTarget> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
  const { addresses, user, password, path, options } = parseServerUrl(scheme, rest, form, OPTIONS);
  if (addresses.length > 1) {
    throw new InvalidArgumentError(`${scheme}: takes one host: the primary, or a name that follows it.`);
  }
  const [address] = addresses;
  const host = options.get('host') ?? (address?.host || undefined);
  return {
    options: given({
      schema: options.get('schema'),
      layout: options.get('layout') as PostgresStoreOptions['layout'],
      table: options.get('table'),
    }),
    target: {
      host,
      port: address?.port ?? undefined,
      user: user ?? undefined,
      password: password ?? undefined,
      database: path || undefined,
      tls: await tlsOf(options, host ?? process.env.PGHOST ?? 'localhost'),
      applicationName: options.get('application_name') ?? 'holdfast',
      connectMsMax: connectMsMax(options.get('connect_timeout')),
    },
  };
}

function connectMsMax(text: string | undefined): number {
  if (text === undefined) return CONNECT_MS_DEFAULT;
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds < 1 || seconds > CONNECT_SECONDS_MAX) {
    throw new InvalidArgumentError(
      `connect_timeout is in whole seconds, from 1 to ${CONNECT_SECONDS_MAX}, as in psql.`,
    );
  }
  return seconds * 1_000;
}

/**
 * `sslmode` and its files with the meaning that psql gives them; the drivers' own meanings differ. Undefined leaves the
 * decision to the driver: no TLS unless PGSSLMODE asks for it.
 */
async function tlsOf(options: ReadonlyMap<string, string>, host: string): Promise<Tls | false | undefined> {
  const text = options.get('sslmode');
  const mode = SSL_MODES.find((known) => known === text);
  if (text !== undefined && mode === undefined) {
    throw new InvalidArgumentError(
      `sslmode is one of ${SSL_MODES.join(', ')}. (Those of psql that fall back to no encryption are left out.)`,
    );
  }
  if (mode === undefined || mode === 'disable') {
    if (['sslrootcert', 'sslcert', 'sslkey'].some((name) => options.has(name))) {
      throw new InvalidArgumentError('sslrootcert, sslcert and sslkey need sslmode=verify-full, or another.');
    }
    return mode === undefined ? undefined : false;
  }
  const ca = await contentOf('sslrootcert', options.get('sslrootcert'));
  const cert = await contentOf('sslcert', options.get('sslcert'));
  const key = await contentOf('sslkey', options.get('sslkey'));
  return {
    rejectUnauthorized: mode.startsWith('verify') || (mode === 'require' && ca !== undefined),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  };
}
