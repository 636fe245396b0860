/**
 * Connections by address: nobody takes all of them away from the others, whether or not they ever say who they are. More
 * are closed as they come. Proxies that are trusted speak for many, so they are not counted.
 */
import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Bucket } from './bucket.js';
import { neighbourhood } from './neighbourhood.js';
import type { IsProxy } from './proxies.js';

/** One line a minute, however many are closed. */
const LINES_PER_SECOND = 1 / 60;

export function capConnections(server: Server, most: number, isProxy: IsProxy, log: Logger): void {
  const open = new Map<string, number>();
  const lines = new Bucket(LINES_PER_SECOND, 1);
  server.on('connection', (socket) => {
    const { remoteAddress } = socket;
    // One that is gone already has none.
    if (remoteAddress === undefined || isProxy(remoteAddress)) return;
    const address = neighbourhood(remoteAddress);
    const count = open.get(address) ?? 0;
    if (count >= most) {
      socket.destroy();
      if (lines.take()) log.warn({ address, most }, 'an address has too many connections: more are closed');
      return;
    }
    open.set(address, count + 1);
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left > 0) open.set(address, left);
      else open.delete(address);
    });
  });
}

/**
 * Connections on which nothing was asked yet, as browsers and clients open in advance. Node does not take them for idle, so
 * that closing would wait for them as long as it may.
 */
export function closeUnused(app: FastifyInstance): void {
  const unused = new Set<Socket>();
  app.server.on(app.server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.server.on('request', ({ socket }) => unused.delete(socket));
  app.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy();
    done();
  });
}
