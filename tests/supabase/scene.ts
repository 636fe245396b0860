/** A database with the roles that Supabase has, and a PostgREST in front of it. */
import { createHmac } from 'node:crypto';
import { PostgrestClient } from '@supabase/postgrest-js';
import { migrate } from 'holdfast/postgres';
import { type PostgresServer, type PostgrestServer, startPostgres, startPostgrest } from 'holdfast-servers';
import pg from 'pg';

const SECRET = 'a secret of more than thirty-two letters, for this test alone';

/** As Supabase makes them. On a server that the user gave, they may be there already. */
const ROLES = `
DO $$ BEGIN
  IF to_regrole('anon') IS NULL THEN CREATE ROLE anon NOLOGIN NOINHERIT; END IF;
  IF to_regrole('authenticated') IS NULL THEN CREATE ROLE authenticated NOLOGIN NOINHERIT; END IF;
  IF to_regrole('service_role') IS NULL THEN CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS; END IF;
  IF to_regrole('authenticator') IS NULL THEN CREATE ROLE authenticator LOGIN NOINHERIT; END IF;
  GRANT anon, authenticated, service_role TO authenticator;
END $$`;

export type Role = 'anon' | 'authenticated' | 'service_role';

export interface Scene {
  readonly server: PostgresServer;
  readonly postgrest: PostgrestServer;
  /** As a superuser, past PostgREST. */
  readonly pool: pg.Pool;
  readonly url: string;
  client(role: Role, more?: Readonly<Record<string, unknown>>): PostgrestClient;
  stop(): Promise<void>;
}

export interface SceneOptions {
  /** Whether the schema is there. On unless told. */
  readonly migrated?: boolean;
  readonly schemas?: readonly string[];
  readonly own?: boolean;
}

export async function openScene(options: SceneOptions = {}): Promise<Scene> {
  const { migrated = true, schemas = ['public', 'holdfast'], own = false } = options;
  const server = await startPostgres(own ? { own } : {});
  const url = await server.createDatabase();
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  // A server that is stopped or restarted tells its idle connections; nobody here needs to know.
  pool.on('error', () => undefined);
  await pool.query(ROLES);
  if (migrated) await migrate(pool, { supabase: true });
  const asAuthenticator = new URL(url);
  asAuthenticator.username = 'authenticator';
  const postgrest = await startPostgrest({
    databaseUrl: asAuthenticator.href,
    schemas,
    anonRole: 'anon',
    jwtSecret: SECRET,
    settings: { PGRST_DB_POOL: '20' },
  });
  return {
    server,
    postgrest,
    pool,
    url,
    client: (role, more = {}) => clientAt(postgrest.url, jwtOf({ role, ...more })),
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
