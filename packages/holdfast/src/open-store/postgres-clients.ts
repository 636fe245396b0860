/**
 * PostgreSQL pools made for locks: few connections, bounded in everything that they wait for. An error event that nobody
 * listens to would end the process when an idle connection breaks, so somebody does. No settings are sent when
 * connecting that a pooler in transaction mode would refuse.
 */
import type { PostgresClient } from '../stores/postgres/index.js';
import { type Candidate, importError } from './client-package.js';
import type { Connection } from './connection.js';
import type { Tls } from './postgres-tls.js';

const KEEP_ALIVE_MS = 10_000;
const IDLE_MS = 60_000;
const BACKOFF_SECONDS_MAX = 1;

/** What is left out comes from PGHOST, PGUSER, PGPASSWORD and the like, as with psql. */
export interface Target {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly tls: Tls | false | undefined;
  readonly applicationName: string;
  readonly connectMsMax: number;
}

export interface Bounds {
  readonly connections: number;
  /** Null for no limit. */
  readonly statementMsMax: number | null;
}

export interface OpenedClient {
  readonly client: PostgresClient;
  readonly connection: Connection;
}

export type Opener = (target: Target, bounds: Bounds) => OpenedClient;

export const POSTGRES_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: 'pg',
    async load() {
      const { Pool } = await importPg();
      return (target, { connections, statementMsMax }) => {
        const { host, port, user, password, database } = target;
        const pool = new Pool({
          ...given({ host, port, user, password, database, ssl: target.tls }),
          application_name: target.applicationName,
          max: connections,
          connectionTimeoutMillis: target.connectMsMax,
          idleTimeoutMillis: IDLE_MS,
          keepAlive: true,
          keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
          ...(statementMsMax === null ? {} : { query_timeout: statementMsMax }),
        });
        // It takes the broken connection out by itself; the next command makes another.
        pool.on('error', () => undefined);
        let ended: Promise<void> | null = null;
        const end = (): Promise<void> => {
          ended ??= pool.end();
          return ended;
        };
        return { client: pool, connection: { where: whereOf(target), trouble: () => null, end } };
      };
    },
  },
  {
    name: 'postgres',
    async load() {
      const { default: postgres } = await importPostgres();
      return (target, { connections }) => {
        const { host, port, user, password, database } = target;
        const sql = postgres({
          ...given({ host, port, user, password, database, ssl: target.tls }),
          connection: { application_name: target.applicationName },
          max: connections,
          connect_timeout: Math.ceil(target.connectMsMax / 1_000),
          idle_timeout: IDLE_MS / 1_000,
          keep_alive: KEEP_ALIVE_MS / 1_000,
          backoff: (attempts: number) => Math.min(0.05 * 2 ** attempts, BACKOFF_SECONDS_MAX),
          // A pooler in transaction mode gives each statement another connection; and notices are not for stdout.
          prepare: false,
          // Its query for array types is not awaited: a connection that ends meanwhile would end the process.
          fetch_types: false,
          onnotice: () => undefined,
        });
        const end = (): Promise<void> => sql.end({ timeout: 1 });
        return { client: sql, connection: { where: whereOf(target), trouble: () => null, end } };
      };
    },
  },
];

async function importPg() {
  try {
    return await import('pg');
  } catch (error) {
    throw importError('pg', error);
  }
}

async function importPostgres() {
  try {
    return await import('postgres');
  } catch (error) {
    throw importError('postgres', error);
  }
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function given<T extends object>(options: T): Given<T> {
  const known = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as Given<T>;
}

function whereOf({ host = process.env.PGHOST ?? 'localhost', port }: Target): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return host.startsWith('/') ? host : `${name}:${port ?? process.env.PGPORT ?? 5432}`;
}
