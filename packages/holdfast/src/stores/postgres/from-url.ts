/** `postgres://` and `postgresql://`: the store on a pool of its own, and the migration of its schema. */
import { InvalidArgumentError, type Store, StoreError } from '../../protocol/index.js';
import { layoutNamed } from '../clients/layout.js';
import { type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, STATEMENT_MS_MAX, storeOn } from '../clients/opened-client.js';
import { TLS_OPTIONS, tlsOf } from '../clients/tls.js';
import { given, parseServerUrl } from '../clients/url.js';
import { migrate, migrationSql, type PostgresStoreOptions, postgresStore } from './index.js';
import { placeOf } from './layout.js';
import * as layouts from './layouts.js';
import { POSTGRES_CLIENTS, type Target } from './open-client.js';
import { SCHEMA } from './sql/names.js';

/** All options except the first three have the names and meanings of psql. */
const OPTIONS = ['schema', 'layout', 'table', ...TLS_OPTIONS, 'application_name', 'connect_timeout', 'host'];
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
      layout: layoutNamed(layouts, options.get('layout'), 'PostgreSQL'),
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
