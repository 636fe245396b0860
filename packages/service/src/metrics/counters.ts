/** What is counted as it happens. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Bulletin } from '../bulletin.js';

const FAST = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const WAITS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function countersOf(registry: Registry, bulletin: Bulletin): void {
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `holdfast_${name}`, help, labelNames, registers: [registry] });
  const seconds = (name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram =>
    new Histogram({ name: `holdfast_${name}_seconds`, help, buckets, labelNames, registers: [registry] });

  const waits = seconds('acquire_wait', 'How long an acquire took until it was granted or given up.', WAITS, [
    'outcome',
  ]);
  const contended = counter('contended_total', 'Acquires that found the lock taken.');
  const released = counter('released_total', 'Releases, by whether the lock was still held.', ['held']);
  const lost = counter('lost_total', 'Renewals of locks that were no longer held.');
  const evicted = counter('evicted_total', 'Holders ended by an operator.');
  const asked = seconds('store', 'How long the store took to answer.', FAST, ['operation', 'outcome']);
  const answered = seconds('http_request', 'How long a request took, waiting included.', WAITS, [
    'method',
    'route',
    'status',
  ]);

  bulletin.on('acquired', ({ waitedMs }) => waits.observe({ outcome: 'granted' }, waitedMs / 1_000));
  bulletin.on('refused', ({ waitedMs }) => waits.observe({ outcome: 'refused' }, waitedMs / 1_000));
  bulletin.on('contended', () => contended.inc());
  bulletin.on('released', ({ held }) => released.inc({ held: String(held) }));
  bulletin.on('lost', () => lost.inc());
  bulletin.on('evicted', ({ count }) => evicted.inc(count ?? 0));
  bulletin.on('store', ({ operation, ok, durationMs }) =>
    asked.observe({ operation, outcome: ok ? 'ok' : 'unknown' }, durationMs / 1_000),
  );
  bulletin.on('request', ({ method, route, status, durationMs }) =>
    answered.observe({ method, route, status }, durationMs / 1_000),
  );
}
