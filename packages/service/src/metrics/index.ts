/** `/metrics` for Prometheus. There are few labels, and never a key: keys are thousands, and may name customers. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Problem } from '../http/problem.js';
import type { Part, ServiceParts } from '../http/service-parts.js';
import { COMMON_PROBLEMS } from '../openapi/problem-schema.js';
import type { Description } from '../openapi/schema.js';
import type { ServiceEvents } from '../service-events.js';
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
  register(app, parts) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    countersOf(registry, parts.events);
    countWaiting(registry, parts);
    const { countMs } = parts.intervals;
    const gauges = countMs === null ? null : new LockGauges(registry, parts, countMs);
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

const FAST = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const WAITS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

function countersOf(registry: Registry, events: ServiceEvents): void {
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `holdfast_${name}`, help, labelNames, registers: [registry] });
  const seconds = (name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram =>
    new Histogram({ name: `holdfast_${name}_seconds`, help, buckets, labelNames, registers: [registry] });

  const waits = seconds('acquire_wait', 'Duration of an acquire until it was granted or refused.', WAITS, [
    'outcome',
  ]);
  // Starts at 0: a rate needs the number from before the first event.
  for (const outcome of ['granted', 'refused']) waits.zero({ outcome });
  const contended = counter('contended_total', 'Acquires that found the lock held by others.');
  const released = counter('released_total', 'Releases, by whether the lock was still held.', ['held']);
  const lost = counter(
    'lost_total',
    'Locks that were lost: their holder found them ended when it renewed them.',
  );
  const evicted = counter('evicted_total', 'Holders that an operator evicted.');
  const dropped = counter('log_dropped_total', 'Lines of the log that could not be written.');
  const asked = seconds('store', 'Duration of calls to the store.', FAST, ['operation', 'outcome']);
  const answered = seconds(
    'http_request',
    'Duration of HTTP requests, including waiting for a lock.',
    WAITS,
    ['method', 'route', 'status'],
  );

  events.on('acquired', ({ waitedMs }) => waits.observe({ outcome: 'granted' }, waitedMs / 1_000));
  events.on('refused', ({ waitedMs }) => waits.observe({ outcome: 'refused' }, waitedMs / 1_000));
  events.on('contended', () => contended.inc());
  events.on('released', ({ held }) => released.inc({ held: String(held) }));
  events.on('lost', () => lost.inc());
  events.on('evicted', ({ count }) => evicted.inc(count ?? 0));
  events.on('dropped', ({ lines }) => dropped.inc(lines));
  events.on('store', ({ operation, ok, durationMs }) =>
    asked.observe({ operation, outcome: ok ? 'ok' : 'unknown' }, durationMs / 1_000),
  );
  events.on('request', ({ method, route, status, durationMs }) =>
    answered.observe({ method, route, status }, durationMs / 1_000),
  );
}
