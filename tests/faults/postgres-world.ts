/** PostgreSQL as a world to break: a migrated database on a server of its own. */
import { migrate } from 'holdfast/postgres';
import { startPostgres } from 'holdfast-servers';
import pg from 'pg';
import type { Driver } from './drivers.js';
import type { World } from './world.js';

export function postgresWorld(driver: Driver & ('pg' | 'postgres')): World {
  return {
    name: `PostgreSQL (${driver})`,
    driver,
    durable: true,
    async start() {
      const server = await startPostgres({ own: true });
      await withClient(server.url, (client) => migrate(client));
      return Object.assign(server, { cutListeners: () => cutListeners(server.url) });
    },
  };
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** A backend that listens shows LISTEN as the last thing that it was asked. */
function cutListeners(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const sql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE query ILIKE 'listen%' AND pid <> pg_backend_pid()`;
    return (await client.query(sql)).rowCount ?? 0;
  });
}
