/** A pool opened from a URL, of which nothing is left once it has ended. */
import { connect, type Socket } from 'node:net';
import { ignore } from '../../protocol/ignore.js';
import { KEEP_ALIVE_MS, type OpenedClient } from './opened-client.js';
import { within } from './within.js';

/** A server that hangs does not answer a goodbye. */
const END_MS_MAX = 1_000;

/**
 * `make` gets a function that opens the sockets of the pool. When the pool has ended, or did not end in time, those that
 * are left are destroyed: also those of connections that are still being made.
 */
export function openedPool<P extends { end(): Promise<void> }>(
  server: { readonly host: string; readonly port: number },
  where: string,
  make: (stream: () => Socket) => P,
): OpenedClient<P> {
  const sockets = new Set<Socket>();
  const settings = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, noDelay: true };
  const pool = make(() => {
    const socket = connect({ host: server.host, port: server.port, ...settings });
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  });
  let ended: Promise<void> | null = null;
  const end = (): Promise<void> => {
    ended ??= within(END_MS_MAX, pool.end(), () => new Error('The pool did not end.'))
      // A pool whose connections broke need not end in order.
      .catch(ignore)
      .finally(() => {
        for (const socket of sockets) socket.destroy();
      });
    return ended;
  };
  return { client: pool, connection: { where, error: () => null, end } };
}
