/** A pool of mysql2 set up for locks: few connections, opened when they are needed, with a limit on every wait. */
import { connect, isIP, type Socket } from 'node:net';
import { InvalidArgumentError } from '../../protocol/index.js';
import type { DatabaseTarget } from '../clients/database-url.js';
import {
  type Candidate,
  CONNECT_MS_MAX,
  importError,
  KEEP_ALIVE_MS,
  type OpenedClient,
  openedPool,
} from '../clients/opened-client.js';
import type { MysqlClient } from './database.js';

/** Statements are short. */
const CONNECTIONS = 5;

export type Opener = (target: DatabaseTarget) => OpenedClient<MysqlClient>;

export const MYSQL_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: 'mysql2',
    async load() {
      const { createPool } = await importMysql2();
      return ({ tls, where, options: _, ...server }) => {
        if (tls?.verifiesHost && isIP(server.host)) {
          // The driver would accept a certificate for `localhost`.
          throw new InvalidArgumentError('sslmode=verify-full needs the name of a host, not its address.');
        }
        const sockets = new Set<Socket>();
        const pool = createPool({
          ...server,
          ...(tls && { ssl: { ...tls, verifyIdentity: tls.verifiesHost } }),
          connectionLimit: CONNECTIONS,
          connectTimeout: CONNECT_MS_MAX,
          // So that those of connections that are still being made can be ended, too.
          stream: () => {
            const socket = connect({
              ...server,
              keepAlive: true,
              keepAliveInitialDelay: KEEP_ALIVE_MS,
              noDelay: true,
            });
            sockets.add(socket.once('close', () => sockets.delete(socket)));
            return socket;
          },
        });
        return openedPool(pool, where, () => {
          for (const socket of sockets) socket.destroy();
        });
      };
    },
  },
];

async function importMysql2() {
  try {
    return await import('mysql2/promise');
  } catch (error) {
    throw importError('mysql2', error);
  }
}
