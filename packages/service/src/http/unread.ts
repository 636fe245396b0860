/**
 * Answers that nobody has read yet are kept in memory, and whoever asks a thousand times at once and reads nothing could
 * fill it. So one principal, or one address where nobody is asked who they are, has so much of them and no more.
 */
import type { FastifyInstance } from 'fastify';
import { clientOf } from './client.js';
import { Problem } from './problem.js';

const UNREAD_BYTES_MAX = 32 * 1_024 * 1_024;
/** Not refused: the refusal is one, too. */
const SMALL_BYTES = 4 * 1_024;

export function capUnread(app: FastifyInstance): void {
  const unread = new Map<string, number>();
  app.addHook('onSend', (request, reply, payload, done) => {
    // Bytes that are there anyway, such as the dashboard's, are no more of them.
    const bytes = typeof payload === 'string' ? payload.length : 0;
    if (bytes <= SMALL_BYTES) {
      done();
      return;
    }
    const who = clientOf(request);
    const sum = (unread.get(who) ?? 0) + bytes;
    // What was done is told, however much that is: to refuse the answer would be to deny it.
    if (request.method === 'GET' && sum > UNREAD_BYTES_MAX) {
      done(
        new Problem('rate-limited', 'Many answers to you were not read yet: read those first.', {
          headers: { 'retry-after': '1' },
        }),
      );
      return;
    }
    unread.set(who, sum);
    reply.raw.once('close', () => {
      const left = (unread.get(who) ?? bytes) - bytes;
      if (left > 0) unread.set(who, left);
      else unread.delete(who);
    });
    done();
  });
}
