/** Spans and metrics, as the real SDK exports them. */
import { type Attributes, context, metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLocks, InvalidArgumentError, type Locks } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { type InstrumentOptions, instrument } from '../../src/telemetry/opentelemetry.js';
import { stage, watchOf } from '../engine/stage.js';
import { tableOf } from './page.js';
import { ENDS, OUTCOMES, REASONS, useEverything } from './scene.js';

const manager = new AsyncLocalStorageContextManager();
beforeAll(() => {
  context.setGlobalContextManager(manager.enable());
});
afterAll(() => context.disable());

/** The SDK with exporters in memory. */
function telemetry() {
  const spanExporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  });
  const meters = new MeterProvider({ readers: [reader] });
  const [tracer, meter] = [tracers.getTracer('test'), meters.getMeter('test')];
  return {
    tracer,
    meter,
    attach:
      (options: InstrumentOptions = {}) =>
      (locks: Locks) =>
        instrument(locks, { tracer, meter, ...options }),
    spans: (name: string): ReadableSpan[] =>
      spanExporter.getFinishedSpans().filter((span) => span.name === name),
    allSpans: () => spanExporter.getFinishedSpans(),
    async metrics(): Promise<readonly MetricData[]> {
      metricExporter.reset();
      await reader.forceFlush();
      return metricExporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    },
  };
}

/** Values of a counter, or counts of a histogram, by the value of an attribute. */
function valuesOf(all: readonly MetricData[], name: string, attribute = ''): Record<string, number> {
  const metric = all.find(({ descriptor }) => descriptor.name === name);
  const points = (metric?.dataPoints ?? []).map(({ attributes, value }): [string, number] => [
    String(attributes[attribute] ?? ''),
    typeof value === 'number' ? value : value.count,
  ]);
  return Object.fromEntries(points);
}

const attributesOf = (all: readonly { readonly attributes: Attributes }[]): string[] =>
  [...new Set(all.flatMap(({ attributes }) => Object.keys(attributes)))].sort();

function kindOf(metric: MetricData): string {
  if (metric.dataPointType === DataPointType.HISTOGRAM) return 'histogram';
  if (metric.dataPointType !== DataPointType.SUM) return String(metric.dataPointType);
  return metric.isMonotonic ? 'counter' : 'up down counter';
}

describe('metrics', () => {
  test('count every call by its outcome and every lease by its end', async () => {
    const { attach, metrics: collect } = telemetry();
    const detach = await useEverything(attach());
    const all = await collect();
    expect(valuesOf(all, 'holdfast.acquire.duration', 'holdfast.acquire.outcome')).toEqual(OUTCOMES);
    expect(valuesOf(all, 'holdfast.hold.duration', 'holdfast.hold.end')).toEqual(ENDS);
    expect(valuesOf(all, 'holdfast.lease.lost', 'holdfast.loss.reason')).toEqual(REASONS);
    expect(valuesOf(all, 'holdfast.lease.held')).toEqual({ '': 1 });
    expect(valuesOf(all, 'holdfast.acquire.waiting')).toEqual({ '': 0 });
    expect(valuesOf(all, 'holdfast.renewal.jeopardy')['']).toBeGreaterThan(0);
    expect(valuesOf(all, 'holdfast.renewal.lateness')['']).toBeGreaterThan(0);
    detach();
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 0 });
  });

  test('measure in seconds', async () => {
    const { clock, open } = stage();
    const { attach, metrics: collect } = telemetry();
    const { locks } = open();
    attach()(locks);
    const lease = await locks.acquire('k');
    const next = locks.acquire('k', { wait: '1m', ttl: '10s' });
    await clock.advance(4_000);
    await lease.release();
    await (await next).release();
    const all = await collect();
    const sumOf = (name: string): number => {
      const metric = all.find(({ descriptor }) => descriptor.name === name);
      if (metric?.dataPointType !== DataPointType.HISTOGRAM) return Number.NaN;
      return metric.dataPoints.reduce((sum, { value }) => sum + (value.sum ?? 0), 0);
    };
    expect(sumOf('holdfast.acquire.duration')).toBeCloseTo(4, 1);
    expect(sumOf('holdfast.hold.duration')).toBeCloseTo(4, 1);
  });

  test('count leases that were held before, and calls that wait now', async () => {
    const { clock, open } = stage();
    const { attach, metrics: collect } = telemetry();
    const { locks } = open();
    const before = await locks.acquire('k');
    const detach = attach()(locks);
    const waiting = locks.acquire('k', { wait: '1m', ttl: '10s' });
    await clock.advance(100);
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 1 });
    expect(valuesOf(await collect(), 'holdfast.acquire.waiting')).toEqual({ '': 1 });
    detach();
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 0 });
    expect(valuesOf(await collect(), 'holdfast.acquire.waiting')).toEqual({ '': 0 });
    await before.release();
    await (await waiting).release();
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 0 });
  });

  test('of two locks are one sum', async () => {
    const { attach, metrics: collect } = telemetry();
    const both = [createLocks(memoryStore()), createLocks(memoryStore())];
    for (const locks of both) {
      attach()(locks);
      await locks.acquire('k');
    }
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 2 });
    for (const locks of both) await locks.close({ drain: 0 });
    expect(valuesOf(await collect(), 'holdfast.lease.held')).toEqual({ '': 0 });
    expect(valuesOf(await collect(), 'holdfast.lease.lost', 'holdfast.loss.reason')).toEqual({ closed: 2 });
  });
});

describe('spans', () => {
  test('have the caller as parent, and the hold links to its acquire', async () => {
    const { clock, open } = stage();
    const { attach, tracer, spans } = telemetry();
    const { locks } = open();
    attach()(locks);
    /** Two callers at once for one key: the second is served when the first one releases, in that one's context. */
    const parents = ['first', 'second'].map((name) => tracer.startSpan(name));
    const runs = parents.map((parent) =>
      context.with(trace.setSpan(context.active(), parent), () =>
        locks.withLock('k', () => new Promise<void>((resolve) => void clock.timer(50, resolve))),
      ),
    );
    await clock.advance(200);
    await Promise.all(runs);
    const ids = parents.map((parent) => parent.spanContext().spanId);
    const [acquires, holds] = [spans('holdfast.acquire'), spans('holdfast.hold')];
    expect(acquires.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(ids);
    expect(holds.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(ids);
    expect(holds.map(({ links }) => links[0]?.context.spanId)).toEqual(
      acquires.map((span) => span.spanContext().spanId),
    );
    expect(acquires.map(({ attributes }) => attributes['holdfast.handed_over'])).toEqual([false, true]);
    expect(acquires.map(({ events }) => events.map(({ name }) => name))).toEqual([[], ['waiting']]);
  });

  test('of a call on a store that answers later have the caller as parent, too', async () => {
    const { open } = stage();
    const { attach, tracer, spans } = telemetry();
    const { locks, store } = open();
    attach()(locks);
    store.fate = () => 'kept';
    const parents = ['first', 'second'].map((name) => tracer.startSpan(name));
    const leases = parents.map((parent, at) =>
      context.with(trace.setSpan(context.active(), parent), () => locks.acquire(`key ${at}`)),
    );
    await new Promise((resolve) => setImmediate(resolve));
    store.deliver();
    await Promise.all(leases);
    expect(spans('holdfast.acquire').map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual(
      parents.map((parent) => parent.spanContext().spanId),
    );
  });

  test('say how calls and leases ended; failures, timeouts and losses are errors', async () => {
    const { attach, spans } = telemetry();
    const detach = await useEverything(attach());
    const acquires = spans('holdfast.acquire');
    const count = (all: readonly ReadableSpan[], attribute: string): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const { attributes } of all) {
        const value = String(attributes[attribute]);
        counts[value] = (counts[value] ?? 0) + 1;
      }
      return counts;
    };
    expect(count(acquires, 'holdfast.acquire.outcome')).toEqual(OUTCOMES);
    expect(count(spans('holdfast.hold'), 'holdfast.hold.end')).toEqual(ENDS);
    const errors = [...acquires, ...spans('holdfast.hold')].filter(
      ({ status }) => status.code === SpanStatusCode.ERROR,
    );
    expect(
      errors.map(({ attributes }) => attributes['error.type'] ?? attributes['holdfast.loss.reason']),
    ).toEqual(['acquire-timeout', 'store', 'deadline', 'evicted']);
    expect(spans('holdfast.hold').filter(({ attributes }) => attributes['holdfast.adopted'])).toHaveLength(1);
    expect(spans('holdfast.hold').flatMap(({ events }) => events.map(({ name }) => name))).toContain(
      'jeopardy',
    );
    const before = spans('holdfast.hold').length;
    detach();
    // The lease that is still held: no span stays open.
    expect(spans('holdfast.hold')).toHaveLength(before + 1);
  });
});

describe('keys', () => {
  const named = /free|theirs|down|long|evicted|passed|again|still held/;
  const textsOf = async ({ allSpans, metrics: collect }: ReturnType<typeof telemetry>) => ({
    spans: JSON.stringify(allSpans().map(({ attributes, events, status }) => [attributes, events, status])),
    metrics: JSON.stringify(
      (await collect()).map(({ dataPoints }) => dataPoints.map(({ attributes }) => attributes)),
    ),
  });
  // The reason of a loss is a word of its own.
  const withoutReasons = (text: string): string => text.replaceAll('"evicted"', '');

  test('are nowhere, unless asked for', async () => {
    const own = telemetry();
    await useEverything(own.attach());
    const { spans, metrics: series } = await textsOf(own);
    expect(withoutReasons(spans)).not.toMatch(named);
    expect(withoutReasons(series)).not.toMatch(named);
  });

  test.each([true, 'spans'] as const)('are attributes with keys: %j', async (keys) => {
    const own = telemetry();
    await useEverything(own.attach({ keys }));
    const { spans, metrics: series } = await textsOf(own);
    expect(spans).toContain('"holdfast.key":"theirs"');
    expect(series.includes('"holdfast.key":"theirs"')).toBe(keys === true);
  });
});

describe('docs/observability.md', () => {
  test('names the metrics that are exported, with kind, unit and attributes', async () => {
    const { attach, metrics: collect } = telemetry();
    await useEverything(attach({ keys: true }));
    const exported = (await collect()).map((metric) => [
      metric.descriptor.name,
      kindOf(metric),
      metric.descriptor.unit,
      attributesOf(metric.dataPoints)
        .filter((name) => name !== 'holdfast.key')
        .join(', '),
    ]);
    expect(tableOf('OpenTelemetry metric').map((row) => row.slice(0, 4))).toEqual(exported);
  });

  test('names the spans that are exported, with their attributes and events', async () => {
    const { attach, allSpans } = telemetry();
    const detach = await useEverything(attach({ keys: true }));
    detach();
    const names = [...new Set(allSpans().map(({ name }) => name))];
    const exported = names.map((name) => {
      const spans = allSpans().filter((span) => span.name === name);
      const events = spans.flatMap((span) => span.events).filter((event) => event.name !== 'exception');
      return [
        name,
        attributesOf(spans).join(', '),
        [...new Set(events.map((event) => event.name))].join(', '),
      ];
    });
    expect(tableOf('span').map((row) => row.slice(0, 3))).toEqual(exported);
  });
});

test('without a tracer or a meter, nothing is subscribed for it', async () => {
  const { locks } = stage().open();
  const names: string[] = [];
  const on = locks.on.bind(locks);
  const watched = Object.assign(locks, {
    on: ((name, listener) => {
      names.push(name);
      return on(name, listener);
    }) as Locks['on'],
  });
  instrument(watched, { tracer: null, meter: null })();
  expect(names).toEqual([]);
  instrument(watched, { tracer: null, meter: telemetry().meter })();
  expect(names).not.toContain('acquiring');
});

test('the global providers are the default', async () => {
  const { tracer, meter, allSpans, metrics: collect } = telemetry();
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
  metrics.setGlobalMeterProvider({ getMeter: () => meter });
  try {
    const { locks } = stage().open();
    const detach = instrument(locks);
    await locks.withLock('k', () => undefined);
    detach();
    expect(allSpans().map(({ name }) => name)).toEqual(['holdfast.acquire', 'holdfast.hold']);
    expect(await collect()).not.toEqual([]);
  } finally {
    trace.disable();
    metrics.disable();
  }
});

const wrong: [string, unknown, unknown, RegExp][] = [
  ['no locks', undefined, {}, /instrument needs locks/],
  ['an unknown option', null, { key: true }, /key/],
  ['strange keys', null, { keys: 'metrics' }, /keys is "metrics"/],
  ['a provider as tracer', null, { tracer: {} }, /tracer has no startSpan/],
  ['a provider as meter', null, { meter: {} }, /meter has no createHistogram/],
];

test.each(wrong)('refused: %s', (_name, given, options, message) => {
  const locks = given === null ? stage().open().locks : given;
  const call = instrument as (locks: unknown, options: unknown) => unknown;
  expect(() => call(locks, options)).toThrow(InvalidArgumentError);
  expect(() => call(locks, options)).toThrow(message);
});

test('a call that ends while nobody listens any more leaves no span behind', async () => {
  const { clock, open } = stage();
  const { attach, allSpans } = telemetry();
  const { locks } = open();
  const detach = attach()(locks);
  await locks.acquire('k');
  const waiting = watchOf(locks.acquire('k', { wait: 100 }));
  await clock.advance(10);
  detach();
  detach();
  await clock.advance(500);
  expect(waiting.state).toBe('failed');
  expect(allSpans().map(({ name }) => name)).toEqual([
    'holdfast.acquire',
    'holdfast.acquire',
    'holdfast.hold',
  ]);
});
