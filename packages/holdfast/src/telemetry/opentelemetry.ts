/** Spans and metrics of one `Locks` for OpenTelemetry. docs/observability.md has their names. */
import { type Attributes, type Meter, metrics, type Tracer, trace } from '@opentelemetry/api';
import type { Locks } from '../api.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { HOLD_SECONDS, LATE_SECONDS, WAIT_SECONDS } from './buckets.js';
import { type Counts, checkLocks, countLeases } from './lease-counts.js';
import { traceLeases } from './spans.js';

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** Default: the tracer "holdfast" of the global provider. Null: no spans. */
  readonly tracer?: Tracer | null;
  /** Default: the meter "holdfast" of the global provider, which has to be registered before. Null: no metrics. */
  readonly meter?: Meter | null;
  /**
   * Whether `holdfast.key` is an attribute: of spans, or of metrics too. Every key is then a series of its own, and keys
   * may name customers. Default false.
   */
  readonly keys?: boolean | 'spans';
}

/** Makes spans and metrics of these locks. Returns a function that ends it. */
export function instrument(locks: Locks, options: InstrumentOptions = {}): () => void {
  checkLocks(locks, 'instrument');
  const {
    tracer = trace.getTracer('holdfast'),
    meter = metrics.getMeter('holdfast'),
    keys = false,
  } = checkOptionNames(options, ['tracer', 'meter', 'keys']);
  if (typeof keys !== 'boolean' && keys !== 'spans') {
    throw new InvalidArgumentError(`keys is ${show(keys)}, but has to be true, false or 'spans'.`);
  }
  checkMethod(tracer, 'tracer', 'startSpan');
  checkMethod(meter, 'meter', 'createHistogram');
  const stops = [
    ...(tracer ? [traceLeases(locks, tracer, keys !== false)] : []),
    ...(meter ? [countLeases(locks, countsOn(meter, keys === true))] : []),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function checkMethod(value: object | null, name: string, method: string): void {
  if (value === null || typeof (value as Record<string, unknown>)[method] === 'function') return;
  throw new InvalidArgumentError(
    `${name} has no ${method}: pass a ${name} of @opentelemetry/api, or null for none.`,
  );
}

function countsOn(meter: Meter, keys: boolean): Counts {
  const seconds = (name: string, description: string, boundaries: number[]) =>
    meter.createHistogram(name, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: boundaries },
    });
  const acquires = seconds(
    'holdfast.acquire.duration',
    'Duration of calls that ask for a lease.',
    WAIT_SECONDS,
  );
  const holds = seconds('holdfast.hold.duration', 'How long leases were held.', HOLD_SECONDS);
  const lateness = seconds(
    'holdfast.renewal.lateness',
    'How long after its planned time a renewal was answered.',
    LATE_SECONDS,
  );
  const waiting = meter.createUpDownCounter('holdfast.acquire.waiting', {
    description: 'Calls that wait for a lock in this process.',
    unit: '{call}',
  });
  const held = meter.createUpDownCounter('holdfast.lease.held', {
    description: 'Leases held in this process.',
    unit: '{lease}',
  });
  const lost = meter.createCounter('holdfast.lease.lost', {
    description: 'Leases that ended without a release.',
    unit: '{lease}',
  });
  const jeopardy = meter.createCounter('holdfast.renewal.jeopardy', {
    description: 'Renewals that were not answered and are sent again.',
    unit: '{renewal}',
  });
  const labels = (key: string, attributes: Attributes = {}): Attributes =>
    keys ? { ...attributes, 'holdfast.key': key } : attributes;
  return {
    onAcquireEnded: (key, outcome, took) =>
      acquires.record(took, labels(key, { 'holdfast.acquire.outcome': outcome })),
    // In the outcomes already.
    onContended: () => undefined,
    onWaiting: (key, change) => waiting.add(change, labels(key)),
    onHeld: (key, change) => held.add(change, labels(key)),
    onHoldEnded: (key, end, took) => holds.record(took, labels(key, { 'holdfast.hold.end': end })),
    onLost: (key, reason) => lost.add(1, labels(key, { 'holdfast.loss.reason': reason })),
    onJeopardy: (key) => jeopardy.add(1, labels(key)),
    onRenewed: (key, late) => lateness.record(late, labels(key)),
  };
}
