/** Is the process alive, and may it be sent work: for load balancers and schedulers, who have no key. */
import type { FastifyInstance } from 'fastify';
import { problemOf } from '../http/problems.js';
import { noteTrouble } from '../http/server.js';
import type { Part } from '../http/service-parts.js';

/** A key that nobody has: a read of it costs next to nothing, and asks the store all the same. */
const NOBODYS_KEY = 'holdfast/readyz';

/** While it closes both are 503, as everything is. */
export const health: Part = {
  name: 'health',
  register(app: FastifyInstance, { desk, log }) {
    const config = { needs: 'public' } as const;
    app.get('/healthz', { config }, async () => ({ status: 'ok' }));
    app.get('/readyz', { config }, async (request, reply) => {
      try {
        await desk.read(NOBODYS_KEY);
        return { status: 'ready' };
      } catch (error) {
        // What the store said may name hosts and users: it belongs in the log.
        noteTrouble(log, request, problemOf(error));
        request.note.outcome = 'store-unavailable';
        return await reply.code(503).send({ status: 'store-unavailable' });
      }
    });
  },
};
