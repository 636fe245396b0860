/**
 * Connections on which nothing was asked yet, as browsers open them ahead. Node does not count them as idle, so that
 * closing would wait in vain for what they may ask.
 */
import { type IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

export function closeSilent({ server }: FastifyInstance, closing: AbortSignal): void {
  const silent = new Set<Socket>();
  server.on(server instanceof Server ? 'connection' : 'secureConnection', (socket: Socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', ({ socket }: IncomingMessage) => silent.delete(socket));
  closing.addEventListener('abort', () => {
    for (const socket of silent) socket.destroy();
  });
}
