/** Metrics in a registry of the real prom-client. */
import { Counter, Gauge, type OpenMetricsContentType, Registry, register } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { createLocks, InvalidArgumentError, type Locks } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { type CollectOptions, collectMetrics } from '../../src/telemetry/prometheus.js';
import { stage } from '../engine/stage.js';
import { tableOf } from './page.js';
import { CONTENDED, ENDS, OUTCOMES, REASONS, useEverything } from './scene.js';

afterEach(() => register.clear());

const attach =
  (options: CollectOptions) =>
  (locks: Locks): (() => void) =>
    collectMetrics(locks, options);

/** Values of a series by one of its labels; of a histogram, the counts. */
async function valuesOf(registry: Registry, name: string, label = ''): Promise<Record<string, number>> {
  const text = await registry.getSingleMetricAsString(name);
  const series = new RegExp(`^${name}(?:_count)?(?:\\{(.*)\\})? (.+)$`);
  const values: [string, number][] = [];
  for (const line of text.split('\n')) {
    const found = series.exec(line);
    if (found)
      values.push([new RegExp(`${label}="([^"]*)"`).exec(found[1] ?? '')?.[1] ?? '', Number(found[2])]);
  }
  return Object.fromEntries(values);
}

test('every call is counted by its outcome and every lease by its end', async () => {
  const registry = new Registry();
  const detach = await useEverything(attach({ register: registry }));
  const { acquired, ...others } = OUTCOMES;
  expect(await valuesOf(registry, 'holdfast_acquire_wait_seconds', 'outcome')).toEqual({
    granted: acquired,
    ...others,
  });
  expect(await valuesOf(registry, 'holdfast_hold_seconds', 'end')).toEqual(ENDS);
  expect(await valuesOf(registry, 'holdfast_lost_total', 'reason')).toEqual(REASONS);
  expect(await valuesOf(registry, 'holdfast_released_total', 'held')).toEqual({ true: ENDS.released });
  expect(await valuesOf(registry, 'holdfast_contended_total')).toEqual({ '': CONTENDED });
  expect(await valuesOf(registry, 'holdfast_held_here')).toEqual({ '': 1 });
  expect(await valuesOf(registry, 'holdfast_waiting_here')).toEqual({ '': 0 });
  expect((await valuesOf(registry, 'holdfast_jeopardy_total'))['']).toBeGreaterThan(0);
  expect((await valuesOf(registry, 'holdfast_renewal_lateness_seconds'))['']).toBeGreaterThan(0);
  expect(await registry.metrics()).not.toMatch(/theirs|key=/);
  detach();
  expect(await valuesOf(registry, 'holdfast_held_here')).toEqual({ '': 0 });
});

test('keys are labels if asked for', async () => {
  const registry = new Registry();
  await useEverything(attach({ register: registry, keys: true }));
  expect(await registry.metrics()).toMatch(
    /holdfast_acquire_wait_seconds_count\{outcome="timed-out",key="theirs"\} 1/,
  );
});

test('several locks on one registry are counted together, in the global one by default', async () => {
  const both = [createLocks(memoryStore()), createLocks(memoryStore())];
  for (const locks of both) {
    collectMetrics(locks);
    await locks.acquire('k');
  }
  expect(await valuesOf(register, 'holdfast_held_here')).toEqual({ '': 2 });
  for (const locks of both) await locks.close({ drain: 0 });
  expect(await valuesOf(register, 'holdfast_held_here')).toEqual({ '': 0 });
});

test('a registry for OpenMetrics serves as well', async () => {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  await useEverything(attach({ register: registry }));
  expect(await registry.metrics()).toMatch(/# TYPE holdfast_contended counter/);
});

test('docs/observability.md names the metrics that are registered, with kind and labels', async () => {
  const registry = new Registry();
  await useEverything(attach({ register: registry }));
  const registered = await registry.getMetricsAsJSON();
  const rows = registered.map(({ name, type, values }) => {
    const labels = new Set(values.flatMap(({ labels: own }) => Object.keys(own)));
    return [name, type, [...labels].filter((label) => label !== 'le').join(', ')];
  });
  expect(tableOf('Prometheus metric').map((row) => row.slice(0, 3))).toEqual(
    rows.map((row) => row.map(String)),
  );
  for (const { help } of registered) expect(help).toMatch(/^[A-Z].*\.$/);
});

const wrong: [string, () => [unknown, unknown], RegExp][] = [
  ['no locks', () => [undefined, {}], /collectMetrics needs locks/],
  ['an unknown option', () => [stage().open().locks, { registry: new Registry() }], /registry/],
  ['no registry', () => [stage().open().locks, { register: {} }], /has to be a Registry of prom-client/],
  ['strange keys', () => [stage().open().locks, { keys: 'all' }], /keys is "all"/],
];

test.each(wrong)('refused: %s', (_name, args, message) => {
  const call = collectMetrics as (locks: unknown, options: unknown) => unknown;
  expect(() => call(...args())).toThrow(InvalidArgumentError);
  expect(() => call(...args())).toThrow(message);
});

test('refused: a registry that has a metric of that name from elsewhere, or with other labels', () => {
  const { locks } = stage().open();
  const other = new Registry();
  new Gauge({ name: 'holdfast_lost_total', help: 'Something else.', registers: [other] });
  expect(() => collectMetrics(locks, { register: other })).toThrow(/another metric holdfast_lost_total/);
  const labelled = new Registry();
  new Counter({ name: 'holdfast_lost_total', help: 'Without a reason.', registers: [labelled] });
  expect(() => collectMetrics(locks, { register: labelled })).toThrow(/another metric holdfast_lost_total/);
  const keyed = new Registry();
  collectMetrics(locks, { register: keyed, keys: true });
  expect(() => collectMetrics(locks, { register: keyed })).toThrow(/the same `keys`/);
});
