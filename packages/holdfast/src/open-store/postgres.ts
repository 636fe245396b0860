/** `postgres://` and `postgresql://`: from the URL to a pool and a store on it. */
import { InvalidArgumentError, type Store } from '../protocol/index.js';
import { loadFirst } from './client-package.js';
import { attended } from './connection.js';
import { POSTGRES_CLIENTS, type Target } from './postgres-clients.js';
import { checkedSslMode, tlsOf } from './postgres-tls.js';
import { parseServerUrl } from './url.js';

export type PostgresScheme = 'postgres' | 'postgresql';

/** All but the first are as psql knows them. */
const OPTIONS = [
  'schema',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'connect_timeout',
  'host',
];
/** Asking must be given up before those who ask give up: 5 s, for a look at a key. */
const CONNECT_MS_MAX = 3_000;
const CONNECT_SECONDS_MAX = 60;
/** A claim, a renewal, a release, a look: none waits for another connection's row lock for long. */
const STATEMENT_MS_MAX = 4_000;
/** Statements are short, and what is due at the same moment travels in one. Listening has one more of its own. */
const CONNECTIONS = 5;

export interface PostgresTarget {
  readonly target: Target;
  readonly schema: string | undefined;
}

export async function openPostgres(
  scheme: PostgresScheme,
  rest: string,
  clients = POSTGRES_CLIENTS,
): Promise<Store> {
  const { target, schema } = await postgresTarget(scheme, rest);
  const open = await loadFirst('PostgreSQL', clients);
  const { postgresStore } = await import('../stores/postgres/index.js');
  const { client, connection } = open(target, { connections: CONNECTIONS, statementMsMax: STATEMENT_MS_MAX });
  try {
    return attended(postgresStore(client, schema === undefined ? {} : { schema }), connection);
  } catch (error) {
    await connection.end();
    throw error;
  }
}

export async function postgresTarget(scheme: PostgresScheme, rest: string): Promise<PostgresTarget> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
  const { addresses, user, password, path, options } = parseServerUrl(scheme, rest, form, OPTIONS);
  if (addresses.length > 1) {
    throw new InvalidArgumentError(`${scheme}: takes one host: the primary, or a name that follows it.`);
  }
  const [address] = addresses;
  const host = options.get('host') ?? (address?.host || undefined);
  const sslmode = checkedSslMode(options.get('sslmode'));
  const tls = await tlsOf(sslmode, host ?? process.env.PGHOST ?? 'localhost', {
    rootcert: options.get('sslrootcert'),
    cert: options.get('sslcert'),
    key: options.get('sslkey'),
  });
  return {
    schema: options.get('schema'),
    target: {
      host,
      port: address?.port ?? undefined,
      user: user ?? undefined,
      password: password ?? undefined,
      database: path || undefined,
      tls,
      applicationName: options.get('application_name') ?? 'holdfast',
      connectMsMax: connectMsMax(options.get('connect_timeout')),
    },
  };
}

function connectMsMax(text: string | undefined): number {
  if (text === undefined) return CONNECT_MS_MAX;
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds < 1 || seconds > CONNECT_SECONDS_MAX) {
    throw new InvalidArgumentError(
      `connect_timeout is in whole seconds, from 1 to ${CONNECT_SECONDS_MAX}, as in psql.`,
    );
  }
  return seconds * 1_000;
}
