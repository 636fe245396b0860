/** A database with the roles that Supabase has, and a PostgREST in front of it. */
import { createHmac } from 'node:crypto';
import { PostgrestClient } from '@supabase/postgrest-js';
import { migrate } from 'holdfast/postgres';
import {
  type PostgresServer,
  type PostgrestServer,
  startPostgres,
  startPostgrest,
} from 'holdfast-test-servers';
import pg from 'pg';

const SECRET = 'a secret of more than thirty-two letters, for this test alone';

/** As Supabase makes them. */
const ROLES = `
CREATE ROLE anon NOLOGIN NOINHERIT;
CREATE ROLE authenticated NOLOGIN NOINHERIT;
CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT;
GRANT anon, authenticated, service_role TO authenticator`;

/** As a project has it for everything in `public`. */
export const PUBLIC_RIGHTS = 'GRANT ALL ON ALL TABLES IN SCHEMA public TO service_role;';

export type Role = 'anon' | 'authenticated' | 'service_role';

export interface Scene {
  readonly server: PostgresServer;
  readonly postgrest: PostgrestServer;
  /** As a superuser, past PostgREST. */
  readonly pool: pg.Pool;
  /** The same database for other clients. */
  readonly databaseUrl: string;
  client(role: Role): PostgrestClient;
  stop(): Promise<void>;
}

/** With the schema of the locks in it, unless told otherwise, and with what an application has there. */
export async function openScene({ migrated = true, application = '' } = {}): Promise<Scene> {
  const server = await startPostgres({ own: true });
  const url = await server.createDatabase();
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  // A server that is stopped or restarted tells its idle connections; nobody here needs to know.
  pool.on('error', () => undefined);
  await pool.query(ROLES);
  if (migrated) await migrate(pool, { supabase: true });
  // PostgREST reads the functions when it starts.
  if (application !== '') await pool.query(application);
  const asAuthenticator = new URL(url);
  asAuthenticator.username = 'authenticator';
  const postgrest = await startPostgrest({
    databaseUrl: asAuthenticator.href,
    schemas: ['public', 'holdfast'],
    anonRole: 'anon',
    jwtSecret: SECRET,
    // Few, so that requests wait before PostgREST takes them up, and not on each other's rows.
    settings: { PGRST_DB_POOL: '6' },
  });
  return {
    server,
    postgrest,
    pool,
    databaseUrl: url,
    client: (role) => clientAt(postgrest.url, jwtOf({ role })),
    async stop() {
      await postgrest.stop();
      await pool.end();
      await server.stop();
    },
  };
}

export function clientAt(url: string, token: string): PostgrestClient {
  return new PostgrestClient(url, { headers: { Authorization: `Bearer ${token}` } });
}

export function jwtOf(claims: object, secret = SECRET): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const said = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${said}.${createHmac('sha256', secret).update(said).digest('base64url')}`;
}
