/** Liveness and readiness, for load balancers and schedulers without credentials. */
import { problemOf } from '../http/problem.js';
import { logProblem } from '../http/server.js';
import type { Part } from '../http/service-parts.js';
import { constant, type Description, object, oneOf, ref } from '../openapi/schema.js';

/** While the service closes, both answer 503, as all routes do; while it drains, only `/readyz` does. */
export const health: Part = {
  name: 'health',
  register(app, { readiness, log }) {
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
        // The store's own text may name hosts and users, so it is only for the log.
        logProblem(log, request, problemOf(error));
        return await refuse('store-unavailable');
      }
    });
  },
};

function status(value: string, description: string): object {
  return { schema: object({ status: constant(value, description) }) };
}

const closing = { schema: ref('Problem') };

const healthDescription: Description = {
  operationId: 'healthz',
  summary: 'Check that the process is alive',
  tags: ['Operations'],
  response: {
    200: { description: 'It is.', content: { 'application/json': status('ok', 'The process is alive.') } },
  },
  problems: ['forbidden', 'closing'],
};

const readyDescription: Description = {
  operationId: 'readyz',
  summary: 'Check that the store answers',
  tags: ['Operations'],
  response: {
    200: {
      description: 'It does.',
      content: { 'application/json': status('ready', 'Requests can be sent.') },
    },
    503: {
      description: 'The store does not answer, or the service is draining or closing.',
      content: {
        'application/json': {
          schema: object({
            status: oneOf(
              ['store-unavailable', 'draining'],
              'The store does not answer, or the service is about to close.',
            ),
          }),
        },
        'application/problem+json': closing,
      },
    },
  },
  problems: ['forbidden'],
};
