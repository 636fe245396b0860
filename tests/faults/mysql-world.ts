/** MariaDB as a world to break: databases with the table, on a server of their own or on a shared one. */
import { createTable } from 'holdfast/mysql';
import { type MariadbServer, startMariadb } from 'holdfast-test-servers';
import { createConnection } from 'mysql2/promise';
import type { Driver } from './drivers.js';
import type { Place, World } from './world.js';

export function mysqlWorld(driver: Driver & ('mysql2' | 'mariadb')): World {
  let shared: Promise<MariadbServer> | null = null;
  return {
    name: `MariaDB (${driver})`,
    driver,
    durable: true,
    async startServer() {
      const server = await startMariadb({ own: true });
      return Object.assign(server, await placeOn(server));
    },
    async openPlace() {
      shared ??= startMariadb({ settings: { 'max-connections': '400' } });
      // It goes with the server.
      return { ...(await placeOn(await shared)), stop: () => Promise.resolve() };
    },
    async close() {
      await (await shared)?.stop();
    },
  };
}

async function placeOn({ host, port, createDatabase }: MariadbServer): Promise<Omit<Place, 'stop'>> {
  const url = await createDatabase();
  const connection = await createConnection({ uri: url });
  await createTable(connection);
  await connection.end();
  // There are no wake-ups, and no connection for them.
  return { url, host, port, cutListeners: () => Promise.resolve(0) };
}
