/** PostgreSQL as a world to break: migrated databases, on a server of their own or on a shared one. */
import { migrate, type PostgresLayout } from 'holdfast/postgres';
import { type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import type { Driver } from './drivers.js';
import type { World } from './world.js';

/** With a layout, only by pg: there nobody hears hints, and those who came back at once would starve the rest. */
export function postgresWorld(driver: Driver & ('pg' | 'postgres'), layout?: PostgresLayout): World {
  let shared: Promise<PostgresServer> | null = null;
  const place = layout ? { layout } : {};
  const query = layout ? `?layout=${layout.name}` : '';
  return {
    name: `PostgreSQL (${layout?.name ?? driver})`,
    driver,
    durable: true,
    ...(layout && { restMs: 400, exclusive: true }),
    async startServer() {
      const server = await startPostgres({ own: true });
      await withClient(server.url, (client) => migrate(client, place));
      return Object.assign(server, { url: server.url + query, cutListeners: () => cutListeners(server.url) });
    },
    async openPlace() {
      shared ??= startPostgres({ own: true, settings: { max_connections: '300' } });
      const { host, port, createDatabase } = await shared;
      const url = await createDatabase();
      await withClient(url, (client) => migrate(client, place));
      // It goes with the server.
      return {
        url: url + query,
        host,
        port,
        cutListeners: () => cutListeners(url),
        stop: () => Promise.resolve(),
      };
    },
    async close() {
      await (await shared)?.stop();
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
      WHERE query ILIKE 'listen%' AND datname = current_database() AND pid <> pg_backend_pid()`;
    return (await client.query(sql)).rowCount ?? 0;
  });
}
