/**
 * PostgreSQL pools set up for locks: few connections, a limit on every wait. The pools have an `error` listener: an
 * unhandled error event of an idle connection would end the process. They send no settings on connecting that a pooler
 * in transaction mode would refuse.
 */
import { ignore } from '../../protocol/ignore.js';
import { type Candidate, importError, KEEP_ALIVE_MS, type OpenedClient } from '../clients/opened-client.js';
import type { Tls } from '../clients/tls.js';
import { given, hostAndPort } from '../clients/url.js';
import type { PostgresClient } from './index.js';

const IDLE_MS = 60_000;
const BACKOFF_SECONDS_MAX = 1;

/** Undefined values come from PGHOST, PGUSER, PGPASSWORD and the like, as with psql. */
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

export type Opener = (target: Target, bounds: Bounds) => OpenedClient<PostgresClient>;

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
        // The pool drops the broken connection itself; the next command opens another.
        pool.on('error', ignore);
        const end = (): Promise<void> => pool.end();
        return { client: pool, connection: { where: whereOf(target), error: () => null, end } };
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
          // A pooler in transaction mode gives each statement another connection.
          prepare: false,
          // The driver does not await its query for array types: a connection that ends meanwhile would end the process.
          fetch_types: false,
          // By default the driver prints notices to stdout.
          onnotice: () => undefined,
        });
        const end = (): Promise<void> => sql.end({ timeout: 1 });
        return { client: sql, connection: { where: whereOf(target), error: () => null, end } };
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

function whereOf({ host = process.env.PGHOST ?? 'localhost', port }: Target): string {
  return host.startsWith('/') ? host : hostAndPort(host, port ?? Number(process.env.PGPORT ?? 5432));
}
