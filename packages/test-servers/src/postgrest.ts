/** PostgREST in front of a database: the server behind `supabase.rpc`. */
import { timeout } from './clock.js';
import { need } from './install.js';
import { freePort } from './ports.js';
import { type Controls, supervise } from './supervise.js';

export interface PostgrestOptions {
  /** With the role that PostgREST connects as, which must be a member of `anonRole`. */
  readonly databaseUrl: string;
  readonly schemas: readonly string[];
  readonly anonRole: string;
  readonly jwtSecret?: string;
  /** Further variables: `{ PGRST_DB_POOL: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgrestServer extends Controls {
  readonly url: string;
}

/** It is ready once it has read the schema: earlier requests are refused. */
async function isReady(adminPort: number, port: number): Promise<boolean> {
  const signal = timeout(2000);
  const ready = await fetch(`http://127.0.0.1:${adminPort}/ready`, { signal });
  if (!ready.ok) return false;
  const answer = await fetch(`http://127.0.0.1:${port}/`, { signal });
  await answer.arrayBuffer();
  return answer.status < 500;
}

export async function startPostgrest(options: PostgrestOptions): Promise<PostgrestServer> {
  const command = await need('postgrest');
  let adminPort = 0;
  const controls = await supervise({
    name: 'postgrest',
    gentle: 'SIGTERM',
    launch: async (port, folder) => {
      adminPort = await freePort();
      const env = {
        PGRST_DB_URI: options.databaseUrl,
        PGRST_DB_SCHEMAS: options.schemas.join(','),
        PGRST_DB_ANON_ROLE: options.anonRole,
        PGRST_SERVER_HOST: '127.0.0.1',
        PGRST_SERVER_PORT: String(port),
        PGRST_ADMIN_SERVER_PORT: String(adminPort),
        // On a busy machine the ten connections may all be taken for longer than the usual 10 s.
        PGRST_DB_POOL_ACQUISITION_TIMEOUT: '60',
        ...(options.jwtSecret === undefined ? {} : { PGRST_JWT_SECRET: options.jwtSecret }),
        ...options.settings,
      };
      return { command, args: [], folder, env };
    },
    answers: (port) => isReady(adminPort, port),
  });
  return Object.assign(controls, { url: `http://${controls.host}:${controls.port}` });
}
