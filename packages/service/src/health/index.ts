/** Liveness and readiness, for load balancers and schedulers without credentials. */
import type { FastifyInstance } from 'fastify';
import { problemOf } from '../http/problems.js';
import { logProblem } from '../http/server.js';
import type { Part } from '../http/service-parts.js';
import { healthDescription, readyDescription } from './schemas.js';

/** While the service closes both are 503, as everything is; while it drains, only `/readyz`. */
export const health: Part = {
  name: 'health',
  register(app: FastifyInstance, { readiness, log }) {
    const config = { needs: 'public' } as const;
    app.get('/healthz', { config, schema: healthDescription }, async () => ({ status: 'ok' }));
    app.get('/readyz', { config, schema: readyDescription }, async (request, reply) => {
      const refuse = (status: string) => {
        request.note.outcome = status;
        return reply.code(503).header('retry-after', '1').send({ status });
      };
      if (readiness.isDraining) return await refuse('draining');
      try {
        await readiness.check();
        return { status: 'ready' };
      } catch (error) {
        // The store's own text may name hosts and users: it is for the log only.
        logProblem(log, request, problemOf(error));
        return await refuse('store-unavailable');
      }
    });
  },
};
