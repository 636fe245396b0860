/** A pool of mysql2 set up for locks: few connections, opened when they are needed, with a limit on every wait. */
import { isIP } from 'node:net';
import { InvalidArgumentError } from '../../protocol/index.js';
import type { DatabaseTarget } from '../clients/database-url.js';
import { type Candidate, CONNECT_MS_MAX, importError, type OpenedClient } from '../clients/opened-client.js';
import { openedPool } from '../clients/opened-pool.js';
import type { MysqlClient } from './client.js';

/** Every command is a statement of its own, and short. */
const CONNECTIONS = 8;

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
        const ssl = tls && { ssl: { ...tls, verifyIdentity: tls.verifiesHost } };
        const bounds = { connectionLimit: CONNECTIONS, connectTimeout: CONNECT_MS_MAX };
        return openedPool(server, where, (stream) => createPool({ ...server, ...ssl, ...bounds, stream }));
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
