/** Counters and histograms, from the events of the service. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { ServiceEvents } from '../service-events.js';

const FAST = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const WAITS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function countersOf(registry: Registry, events: ServiceEvents): void {
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `holdfast_${name}`, help, labelNames, registers: [registry] });
  const seconds = (name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram =>
    new Histogram({ name: `holdfast_${name}_seconds`, help, buckets, labelNames, registers: [registry] });

  const waits = seconds('acquire_wait', 'Duration of an acquire until it was granted or refused.', WAITS, [
    'outcome',
  ]);
  const contended = counter('contended_total', 'Acquires that found the lock held by others.');
  const released = counter('released_total', 'Releases, by whether the lock was still held.', ['held']);
  const lost = counter(
    'lost_total',
    'Locks that were lost: their holder found them ended when it renewed them.',
  );
  const evicted = counter('evicted_total', 'Holders that an operator evicted.');
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
  events.on('store', ({ operation, ok, durationMs }) =>
    asked.observe({ operation, outcome: ok ? 'ok' : 'unknown' }, durationMs / 1_000),
  );
  events.on('request', ({ method, route, status, durationMs }) =>
    answered.observe({ method, route, status }, durationMs / 1_000),
  );
}
