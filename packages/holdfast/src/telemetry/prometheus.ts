/**
 * Metrics of one `Locks` in a registry of prom-client. Metrics that mean the same in the lock service have the same names
 * there; gauges of this process end in `_here`, because the service counts the whole store without it.
 */
import {
  Counter,
  Gauge,
  register as globalRegistry,
  Histogram,
  type OpenMetricsContentType,
  type PrometheusContentType,
  type Registry,
} from 'prom-client';
import type { Locks } from '../api.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { HOLD_SECONDS, LATE_SECONDS, WAIT_SECONDS } from './buckets.js';
import { type AcquireOutcome, type Counts, checkLocks, countLeases } from './lease-counts.js';

type AnyRegistry = Registry<PrometheusContentType> | Registry<OpenMetricsContentType>;

/** Options of `collectMetrics`. */
export interface CollectOptions {
  /** Default: the global registry of prom-client. */
  readonly register?: AnyRegistry;
  /**
   * Whether `key` is a label. Every key is then a series of its own, and keys may name customers. The same for all locks
   * on one registry. Default false.
   */
  readonly keys?: boolean;
}

/** Counts these locks in the registry. Several locks on one registry are counted together. Returns a function that ends it. */
export function collectMetrics(locks: Locks, options: CollectOptions = {}): () => void {
  checkLocks(locks, 'collectMetrics');
  const { register = globalRegistry, keys = false } = checkOptionNames(options, ['register', 'keys']);
  if (typeof register?.registerMetric !== 'function') {
    throw new InvalidArgumentError(`register is ${show(register)}, but has to be a Registry of prom-client.`);
  }
  if (typeof keys !== 'boolean') {
    throw new InvalidArgumentError(`keys is ${show(keys)}, but has to be true or false.`);
  }
  return countLeases(locks, countsIn(register, keys));
}

/** The service calls it granted. */
const outcomeLabel = (outcome: AcquireOutcome): string => (outcome === 'acquired' ? 'granted' : outcome);

function countsIn(registry: AnyRegistry, keys: boolean): Counts {
  const metrics = new Metrics(registry, keys);
  const waits = metrics.seconds(
    'acquire_wait',
    'Duration of an acquire until it was granted, refused, given up or failed.',
    WAIT_SECONDS,
    'outcome',
  );
  const holds = metrics.seconds('hold', 'How long leases were held, by how they ended.', HOLD_SECONDS, 'end');
  const lateness = metrics.seconds(
    'renewal_lateness',
    'How long after its planned time a renewal was answered.',
    LATE_SECONDS,
  );
  const contended = metrics.counter('contended_total', 'Acquires that found the lock held by others.');
  const released = metrics.counter('released_total', 'Releases, by whether the lock was still held.', 'held');
  const lost = metrics.counter('lost_total', 'Leases that were lost, by reason.', 'reason');
  const jeopardy = metrics.counter('jeopardy_total', 'Renewals that were not answered and are sent again.');
  const waiting = metrics.gauge('waiting_here', 'Acquires that wait for a lock in this process.');
  const held = metrics.gauge('held_here', 'Leases held in this process.');
  const labels = (key: string, own: Record<string, string> = {}): Record<string, string> =>
    keys ? { ...own, key } : own;
  return {
    onAcquireEnded: (key, outcome, took) =>
      waits.observe(labels(key, { outcome: outcomeLabel(outcome) }), took),
    onContended: (key) => contended.inc(labels(key)),
    onWaiting: (key, change) => waiting.inc(labels(key), change),
    onHeld: (key, change) => held.inc(labels(key), change),
    onHoldEnded(key, end, took) {
      holds.observe(labels(key, { end }), took);
      if (end === 'released') released.inc(labels(key, { held: 'true' }));
    },
    onLost: (key, reason) => lost.inc(labels(key, { reason })),
    onJeopardy: (key) => jeopardy.inc(labels(key)),
    onRenewed: (key, late) => lateness.observe(labels(key), late),
  };
}

/** Finds or makes the metrics of a registry. */
class Metrics {
  readonly #registry: AnyRegistry;
  readonly #keys: boolean;

  constructor(registry: AnyRegistry, keys: boolean) {
    this.#registry = registry;
    this.#keys = keys;
  }

  counter(name: string, help: string, ...labels: string[]): Counter {
    return this.#metric(Counter, { name: `holdfast_${name}`, help, labelNames: labels });
  }

  gauge(name: string, help: string, ...labels: string[]): Gauge {
    return this.#metric(Gauge, { name: `holdfast_${name}`, help, labelNames: labels });
  }

  seconds(name: string, help: string, buckets: number[], ...labels: string[]): Histogram {
    return this.#metric(Histogram, { name: `holdfast_${name}_seconds`, help, labelNames: labels, buckets });
  }

  #metric<C extends { name: string; labelNames: string[] }, M extends object>(
    Metric: new (configuration: C & { registers: AnyRegistry[] }) => M,
    configuration: C,
  ): M {
    const { name } = configuration;
    const labelNames = [...configuration.labelNames, ...(this.#keys ? ['key'] : [])];
    const known: unknown = this.#registry.getSingleMetric(name);
    if (known === undefined) return new Metric({ ...configuration, labelNames, registers: [this.#registry] });
    const hasSameLabels =
      known instanceof Metric && 'labelNames' in known && String(known.labelNames) === String(labelNames);
    if (hasSameLabels) return known;
    throw new InvalidArgumentError(
      `The registry has another metric ${name}. Pass a registry of its own, and the same \`keys\` for all locks on it.`,
    );
  }
}
