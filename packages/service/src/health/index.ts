/** Is the process alive, and may it be sent work: for load balancers and schedulers, who have no key. */
import type { FastifyInstance } from 'fastify';
import type { Part } from '../http/service-parts.js';

/** A key that nobody has: a read of it costs next to nothing, and asks the store all the same. */
const NOBODYS_KEY = 'holdfast/readyz';

export const health: Part = {
  name: 'health',
  register(app: FastifyInstance, { desk, closing }) {
    const config = { needs: 'public' } as const;
    app.get('/healthz', { config }, async () => ({ status: 'ok' }));
    app.get('/readyz', { config }, async (request, reply) => {
      if (closing.aborted) return await reply.code(503).send({ status: 'closing' });
      try {
        await desk.read(NOBODYS_KEY);
        return { status: 'ready' };
      } catch (error) {
        // What the store said may name hosts and users: it belongs in the log.
        request.log.warn({ err: error }, 'the store does not answer');
        return await reply.code(503).send({ status: 'store-unavailable' });
      }
    });
  },
};
