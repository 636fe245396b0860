/** POST …/renew, …/release and …/evict. */
import type { FastifyInstance } from 'fastify';
import { checkReason, durationMs, type Lost } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import { auditEviction } from '../http/audit.js';
import { onNamespace, type Principal } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { keepSecret } from '../http/request-log.js';
import type { ServiceParts } from '../http/service-parts.js';
import { ref } from '../openapi/schema.js';
import { minHoldOf } from '../waiting/holds.js';
import { remainingOf } from '../waiting/service-client.js';
import { holdOf, keyIn, LOCK_PATH, ttlOf } from './names.js';
import { pathSchema } from './request-schemas.js';
import { described } from './schemas.js';

export function renewReleaseEvictRoutes(app: FastifyInstance, parts: ServiceParts): void {
  renewRoute(app, parts);
  releaseRoute(app, parts);
  evictRoute(app, parts);
}

function renewRoute(app: FastifyInstance, { client, limits, events, holds }: ServiceParts): void {
  app.route<{ Body: { readonly hold: string; readonly ttl: number | string } }>({
    method: 'POST',
    url: `${LOCK_PATH}/renew`,
    config: onNamespace('lock', 'failure'),
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
      const reply = await client.replyTo({ kind: 'renew', key, hold, ttlMs, block: false });
      const remainingMs = reply.kind === 'renewed' ? remainingOf(reply, sentMs) : 0;
      request.note.outcome = remainingMs > 0 ? 'renewed' : 'lost';
      // A renewal never shortens, so the lease may live longer than requested.
      principal.holds?.(key, body.hold, reply.kind === 'renewed' ? reply.expiresAt - reply.now : 0);
      if (reply.kind !== 'renewed' || remainingMs === 0) {
        holds.lost(key, body.hold);
        throw lostProblem(key, reply.kind === 'lost' ? reply.evicted : undefined);
      }
      holds.held(key, body.hold);
      events.emit('touched', { key });
      const { expiresAt, now } = reply;
      return { key, expiresAt, now, remainingMs };
    },
  });
}

/** The problem also says that an operator ended the hold, and why. */
function lostProblem(key: string, evicted: Lost['evicted']): Problem {
  const stop = 'stop the work that it protects.';
  if (!evicted) return new Problem('lost', `The lock is no longer held under this hold: ${stop}`, { key });
  const { reason } = evicted;
  const why = reason === null ? '' : ` (${JSON.stringify(reason)})`;
  const detail = `An operator evicted the holder of this lock${why}: ${stop}`;
  return new Problem('lost', detail, { key, members: { evicted: { reason } } });
}

function releaseRoute(app: FastifyInstance, { client, limits, events, holds }: ServiceParts): void {
  app.route<{ Body: { readonly hold: string; readonly minHold?: number | string } }>({
    method: 'POST',
    url: `${LOCK_PATH}/release`,
    config: onNamespace('lock', 'failure'),
    schema: described({
      operationId: 'release',
      summary: 'Release a lock, or stop waiting for it',
      description: 'Releasing a lock that is no longer held is a 200 with `held: false`.',
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
      const asked = Math.max(durationMs(minHold, 'minHold', 0, limits.ttlMsMax), minHoldOf(hold));
      // `minHold` keeps the lock like a ttl does, so the same limits apply. A refused release would leave the lock held.
      const { principal } = request;
      const minHoldMs = Math.min(asked, limits.ttlMsMax, principal.ttlMsMax ?? Number.POSITIVE_INFINITY);
      principal.checkTtl?.(key, minHoldMs);
      const reply = await client.replyTo({ kind: 'release', key, hold, minHoldMs });
      const held = reply.kind === 'released' && reply.held;
      request.note.outcome = held ? 'released' : 'not-held';
      noteRelease(request.principal, key, request.body.hold, held ? minHoldMs : 0);
      holds.released(key, request.body.hold, held);
      events.emit('touched', { key });
      return { key, released: true, held, now: reply.now };
    },
  });
}

/**
 * A cool-down keeps the lock from others, so it counts like a hold. It has its own name: a second release finds nothing
 * held and must not end the cool-down.
 */
export function noteRelease(principal: Principal, key: string, hold: string, coolDownMs: number): void {
  principal.holds?.(key, hold, 0);
  if (coolDownMs > 0) principal.holds?.(key, `${hold} cools down`, coolDownMs);
}

interface EvictBody {
  readonly token?: number;
  readonly upToToken?: number;
  readonly reason?: string;
}

function evictRoute(app: FastifyInstance, parts: ServiceParts): void {
  const { client, events } = parts;
  app.route<{ Body: EvictBody | null }>({
    method: 'POST',
    url: `${LOCK_PATH}/evict`,
    config: onNamespace('admin'),
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
      const { token, upToToken, reason } = request.body ?? {};
      if (token !== undefined && upToToken !== undefined) {
        throw new Problem('invalid-argument', 'Give `token` or `upToToken`, but not both.', { key });
      }
      const command = {
        kind: 'evict',
        key,
        fromToken: token ?? 0,
        upToToken: token ?? upToToken ?? (await client.read(key))?.token ?? 0,
        reason: reason === undefined ? null : checkReason(reason),
      } as const;
      const noteEvicted = await auditEviction(parts, request, command);
      const reply = await client.replyTo(command).catch((error: unknown) => {
        noteEvicted(null);
        throw error;
      });
      const evicted = reply.kind === 'evicted' ? reply.count : 0;
      noteEvicted(evicted);
      request.note.outcome = 'evicted';
      events.emit('touched', { key });
      return { key, evicted, now: reply.now };
    },
  });
}
