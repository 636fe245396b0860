/**
 * Limits the responses that a client has not read yet. They stay in memory, and a client that sends a thousand requests
 * and reads nothing could fill it. So a client that reads nothing is disconnected, and the unread bytes of each client are
 * limited. Counted per principal, or per address without authentication.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { soon } from '../clock.js';
import { clientOf } from './addresses.js';
import { Problem } from './problem.js';
import { whenOver } from './request-log.js';

/** How long a client may read nothing of a response. */
const UNREAD_MS = 10_000;
const UNREAD_BYTES_MAX = 32 * 1_024 * 1_024;
/** Always allowed: the 429 itself must fit. */
const SMALL_BYTES = 4 * 1_024;

/** Most responses have left this process at the end of their turn. Only the others need a timer. */
export function disconnectUnread(app: FastifyInstance): void {
  let sent: ServerResponse[] = [];
  const check = (): void => {
    const responses = sent;
    sent = [];
    for (const response of responses) if (!response.writableFinished) response.socket?.setTimeout(UNREAD_MS);
  };
  app.addHook('onSend', (_request, { raw }, _payload, done) => {
    if (sent.push(raw) === 1) soon(check);
    done();
  });
}

export function capUnread(app: FastifyInstance): void {
  const unread = new Map<string, number>();
  app.addHook('onSend', (request, _reply, payload, done) => {
    // Buffers are shared, such as the files of the dashboard, and need no extra memory.
    const bytes = typeof payload === 'string' ? payload.length : 0;
    if (bytes <= SMALL_BYTES) {
      done();
      return;
    }
    const who = clientOf(request);
    const sum = (unread.get(who) ?? 0) + bytes;
    // Only reads are refused: the outcome of a command must reach its client.
    if (request.method === 'GET' && sum > UNREAD_BYTES_MAX) {
      done(new Problem('rate-limited', 'Too many responses to this client are unread: read those first.'));
      return;
    }
    unread.set(who, sum);
    whenOver(request, () => {
      const left = (unread.get(who) ?? bytes) - bytes;
      if (left > 0) unread.set(who, left);
      else unread.delete(who);
    });
    done();
  });
}
