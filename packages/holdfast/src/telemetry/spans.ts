/**
 * Spans of OpenTelemetry. `holdfast.acquire` lasts from the call to its outcome, `holdfast.hold` from there to the end of
 * the lease, with a link to the acquire. Both have the span of the caller as parent: events come in the async context of
 * whoever was answered first, so the caller's context is taken when the call begins.
 */
import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import type { LockEvents, Locks } from '../api.js';
import { HoldfastError } from '../protocol/errors.js';
import { type HoldEnd, leaseId, listen } from './lease-counts.js';

interface Call {
  readonly span: Span;
  /** Of the caller. */
  readonly context: Context;
}

/** Makes spans until the function returned is called, which ends those still open. */
export function traceLeases(locks: Locks, tracer: Tracer, keys: boolean): () => void {
  const calls = new Map<number, Call>();
  const holds = new Map<string, Span>();
  const keyOf = (key: string): Attributes => (keys ? { 'holdfast.key': key } : {});

  const endCall = (call: number, attributes: Attributes, fail?: (span: Span) => void): Call | undefined => {
    const open = calls.get(call);
    if (!open) return undefined;
    calls.delete(call);
    open.span.setAttributes(attributes);
    fail?.(open.span);
    open.span.end();
    return open;
  };
  const endHold = (end: HoldEnd, detail: LockEvents['released'], attributes: Attributes = {}): void => {
    const id = leaseId(detail);
    const span = holds.get(id);
    if (!span) return;
    holds.delete(id);
    span.setAttributes({ 'holdfast.hold.end': end, ...attributes });
    if (end === 'lost') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  };

  const stops = listen(locks, {
    acquiring({ key, call }) {
      const active = context.active();
      const span = tracer.startSpan('holdfast.acquire', { attributes: keyOf(key) }, active);
      calls.set(call, { span, context: active });
    },
    waiting({ call, position }) {
      const attributes = position === null ? {} : { 'holdfast.queue.position': position };
      calls.get(call)?.span.addEvent('waiting', attributes);
    },
    acquired(detail) {
      const { key, token, handedOver, call } = detail;
      const open = endCall(call, {
        'holdfast.acquire.outcome': 'acquired',
        'holdfast.token': token,
        'holdfast.handed_over': handedOver,
      });
      const attributes = { ...keyOf(key), 'holdfast.token': token };
      const links = open ? [{ context: open.span.spanContext() }] : [];
      // Without a parent where the call is older than this listener: the active span is somebody else's.
      const parent = open?.context ?? ROOT_CONTEXT;
      holds.set(leaseId(detail), tracer.startSpan('holdfast.hold', { attributes, links }, parent));
    },
    'not-acquired'({ call, reason, cause }) {
      endCall(call, { 'holdfast.acquire.outcome': reason }, (span) => {
        if (reason !== 'failed' && reason !== 'timed-out') return;
        span.setStatus({ code: SpanStatusCode.ERROR });
        span.setAttribute('error.type', reason === 'failed' ? typeOf(cause) : 'acquire-timeout');
        // The message names the key.
        if (keys && cause instanceof Error) span.recordException(cause);
      });
    },
    adopted(detail) {
      const attributes = { ...keyOf(detail.key), 'holdfast.token': detail.token, 'holdfast.adopted': true };
      holds.set(leaseId(detail), tracer.startSpan('holdfast.hold', { attributes }, context.active()));
    },
    jeopardy(detail) {
      const attributes = {
        'holdfast.remaining': detail.remainingMs / 1_000,
        'error.type': typeOf(detail.cause),
      };
      holds.get(leaseId(detail))?.addEvent('jeopardy', attributes);
    },
    released: (detail) => endHold('released', detail),
    'handed-off': (detail) => endHold('handed-off', detail),
    lost: (detail) => endHold('lost', detail, { 'holdfast.loss.reason': detail.reason }),
  });
  return () => {
    for (const stop of stops.splice(0)) stop();
    for (const { span } of calls.values()) span.end();
    for (const span of holds.values()) span.end();
    calls.clear();
    holds.clear();
  };
}

function typeOf(cause: unknown): string {
  if (cause instanceof HoldfastError) return cause.code;
  return cause instanceof Error ? cause.name : '_OTHER';
}
