/** POST …/renew, …/release and …/evict: what becomes of a grant. */
import type { FastifyInstance } from 'fastify';
import { durationMs } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import { auditEviction } from '../http/audit.js';
import { keepSecret } from '../http/journal.js';
import type { Principal } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import type { ServiceParts } from '../http/service-parts.js';
import { remainingOf } from '../lines/answers.js';
import { minHoldOf } from '../lines/holds.js';
import { ref } from '../openapi/schema.js';
import { holdOf, ttlOf } from './names.js';
import { keyIn, LOCK_PATH, onLock } from './path.js';
import { pathSchema } from './request-schemas.js';
import { described } from './schemas.js';

export function endingRoutes(app: FastifyInstance, parts: ServiceParts): void {
  renewRoute(app, parts);
  releaseRoute(app, parts);
  evictRoute(app, parts);
}

function renewRoute(app: FastifyInstance, { desk, limits, bulletin }: ServiceParts): void {
  app.route<{ Body: { readonly hold: string; readonly ttl: number | string } }>({
    method: 'POST',
    url: `${LOCK_PATH}/renew`,
    config: onLock('lock', 'failure'),
    schema: described({
      operationId: 'renew',
      summary: 'Renew a lock',
      tags: ['Locks'],
      params: pathSchema,
      body: ref('RenewRequest'),
      response: { 200: ref('Renewed') },
      problems: ['lost'],
    }),
    handler: async (request) => {
      const key = keyIn(request);
      const hold = holdOf(request.body.hold);
      keepSecret(request, hold.process);
      const ttlMs = ttlOf(request.body.ttl, limits.ttlMsMax);
      const { principal, body } = request;
      principal.checkTtl?.(key, ttlMs);
      const sentMs = monotonicMs();
      const reply = await desk.ask({ kind: 'renew', key, hold, ttlMs, block: false });
      const remainingMs = reply.kind === 'renewed' ? remainingOf(reply.expiresAt, reply.now, sentMs) : 0;
      request.note.outcome = remainingMs > 0 ? 'renewed' : 'lost';
      // A renewal never shortens: it may live for longer than was asked for.
      principal.holds?.(key, body.hold, reply.kind === 'renewed' ? reply.expiresAt - reply.now : 0);
      if (reply.kind !== 'renewed' || remainingMs === 0) {
        bulletin.tell('lost', { key });
        throw new Problem('lost', 'The lock is no longer held under this hold: stop what it guards.', {
          key,
        });
      }
      bulletin.tell('touched', { key });
      const { expiresAt, now } = reply;
      return { key, expiresAt, now, remainingMs };
    },
  });
}

function releaseRoute(app: FastifyInstance, { desk, limits, bulletin }: ServiceParts): void {
  app.route<{ Body: { readonly hold: string; readonly minHold?: number | string } }>({
    method: 'POST',
    url: `${LOCK_PATH}/release`,
    config: onLock('lock', 'failure'),
    schema: described({
      operationId: 'release',
      summary: 'Release a lock, or stop waiting for it',
      description: 'A release of a lock that is not held any more is a 200 with `held: false`.',
      tags: ['Locks'],
      params: pathSchema,
      body: ref('ReleaseRequest'),
      response: { 200: ref('Released') },
    }),
    handler: async (request) => {
      const key = keyIn(request);
      const hold = holdOf(request.body.hold);
      keepSecret(request, hold.process);
      const { minHold = 0 } = request.body;
      const own = Math.min(minHoldOf(hold), limits.ttlMsMax);
      const minHoldMs = Math.max(durationMs(minHold, 'minHold', 0, limits.ttlMsMax), own);
      // It keeps the lock as a ttl does, so the same cap holds for it.
      request.principal.checkTtl?.(key, minHoldMs);
      const reply = await desk.ask({ kind: 'release', key, hold, minHoldMs });
      const held = reply.kind === 'released' && reply.held;
      request.note.outcome = held ? 'released' : 'not-held';
      noteRelease(request.principal, key, request.body.hold, held ? minHoldMs : 0);
      bulletin.tell('released', { key, held });
      bulletin.tell('touched', { key });
      return { key, released: true, held, now: reply.now };
    },
  });
}

/**
 * What rests is kept from others as what is held, and counts like it; under a name of its own, as a second release finds
 * nothing held and ends nothing.
 */
export function noteRelease(principal: Principal, key: string, hold: string, restMs: number): void {
  principal.holds?.(key, hold, 0);
  if (restMs > 0) principal.holds?.(key, `${hold} rests`, restMs);
}

function evictRoute(app: FastifyInstance, parts: ServiceParts): void {
  const { desk, bulletin } = parts;
  app.route<{ Body: { readonly upToToken?: number } | null }>({
    method: 'POST',
    url: `${LOCK_PATH}/evict`,
    config: onLock('admin'),
    schema: described({
      operationId: 'evict',
      summary: "End other clients' holds, as an operator",
      description: 'Needs the role admin in the namespace.',
      tags: ['Locks'],
      params: pathSchema,
      body: ref('EvictRequest'),
      response: { 200: ref('Evicted') },
      problems: ['audit-unavailable'],
    }),
    handler: async (request) => {
      const key = keyIn(request);
      const told = { key, principal: request.principal.id, requestId: request.id };
      const upToToken = request.body?.upToToken ?? (await desk.read(key))?.token ?? 0;
      const noteOutcome = auditEviction(parts, request, key, upToToken);
      const reply = await desk.ask({ kind: 'evict', key, upToToken }).catch((error: unknown) => {
        noteOutcome(null);
        bulletin.tell('evicted', { ...told, count: null });
        throw error;
      });
      const evicted = reply.kind === 'evicted' ? reply.count : 0;
      noteOutcome(evicted);
      request.note.outcome = 'evicted';
      bulletin.tell('evicted', { ...told, count: evicted });
      bulletin.tell('touched', { key });
      return { key, evicted, now: reply.now };
    },
  });
}
