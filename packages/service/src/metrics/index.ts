/** `/metrics` for Prometheus. Few labels, and never a key: there are thousands of keys, and they may name customers. */
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { monotonicMs } from '../clock.js';
import { Problem } from '../http/problem.js';
import type { Part, ServiceParts } from '../http/service-parts.js';
import { COMMON_PROBLEMS } from '../openapi/problem-schema.js';
import type { Description } from '../openapi/schema.js';
import { countersOf } from './counters.js';
import { LockGauges } from './lock-gauges.js';

const description: Description = {
  operationId: 'metrics',
  summary: 'Get metrics, in the text format of Prometheus',
  description: 'Needs the role read on every namespace.',
  tags: ['Operations'],
  response: {
    200: { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
  },
  problems: COMMON_PROBLEMS,
};

export const metrics: Part = {
  name: 'metrics',
  register(app: FastifyInstance, parts: ServiceParts) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    countersOf(registry, parts.events);
    countWaiting(registry, parts);
    const { countMs } = parts.intervals;
    const gauges = countMs === null ? null : new LockGauges(registry, parts, countMs, monotonicMs);
    const config = { needs: 'read', scope: () => null } as const;
    app.get('/metrics', { config, schema: description }, async (request, reply) => {
      // The numbers include the locks of all namespaces.
      if (!request.may('read', ''))
        throw new Problem('forbidden', `${request.principal.id} needs the right read:*.`);
      await gauges?.update();
      reply.type(registry.contentType);
      return await registry.metrics();
    });
  },
};

function countWaiting(registry: Registry, { queues }: ServiceParts): void {
  new Gauge({
    name: 'holdfast_waiting_here',
    help: 'Requests that wait for a lock in this process.',
    registers: [registry],
    collect() {
      this.set(queues.waiting);
    },
  });
}
