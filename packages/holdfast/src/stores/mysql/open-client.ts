/** A pool of mysql2 set up for locks: few connections, opened when they are needed, with a limit on every wait. */
import { connect, isIP, type Socket } from 'node:net';
import { ignore } from '../../protocol/ignore.js';
import { InvalidArgumentError } from '../../protocol/index.js';
import {
  type Candidate,
  CONNECT_MS_MAX,
  importError,
  KEEP_ALIVE_MS,
  type OpenedClient,
} from '../clients/opened-client.js';
import type { Tls } from '../clients/tls.js';
import { hostAndPort, type Server } from '../clients/url.js';
import { within } from '../clients/within.js';
import type { MysqlClient } from './client.js';

/** Every command is a statement of its own, and short. */
const CONNECTIONS = 8;
/** A server that hangs does not answer a goodbye. */
const END_MS_MAX = 1_000;

export interface Target extends Server {
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly tls: Tls | null;
}

export type Opener = (target: Target) => OpenedClient<MysqlClient>;

export const MYSQL_CLIENTS: readonly Candidate<Opener>[] = [
  {
    name: 'mysql2',
    async load() {
      const { createPool } = await importMysql2();
      return ({ tls, ...server }) => {
        if (tls?.verifiesHost && isIP(server.host)) {
          // The driver would accept a certificate for `localhost`.
          throw new InvalidArgumentError('sslmode=verify-full needs the name of a host, not its address.');
        }
        const ssl = tls && { ssl: { ...tls, verifyIdentity: tls.verifiesHost } };
        const bounds = { connectionLimit: CONNECTIONS, connectTimeout: CONNECT_MS_MAX };
        const sockets = new Set<Socket>();
        const stream = (): Socket => socketTo(server, sockets);
        const pool = createPool({ ...server, ...ssl, ...bounds, stream });
        const end = (): Promise<void> =>
          within(END_MS_MAX, pool.end(), () => new Error('The pool did not end.'))
            // A pool whose connections broke need not end in order.
            .catch(ignore)
            // Also those of connections that are still being made.
            .finally(() => sockets.forEach((socket) => void socket.destroy()));
        const where = hostAndPort(server.host, server.port);
        return { client: pool, connection: { where, error: () => null, end } };
      };
    },
  },
];

/** A new socket, which is one of `sockets` until it is closed. */
function socketTo({ host, port }: Server, sockets: Set<Socket>): Socket {
  const settings = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, noDelay: true };
  const socket = connect({ host, port, ...settings });
  sockets.add(socket);
  return socket.once('close', () => sockets.delete(socket));
}

async function importMysql2() {
  try {
    return await import('mysql2/promise');
  } catch (error) {
    throw importError('mysql2', error);
  }
}
