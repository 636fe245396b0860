/** POST …/acquire: a grant, or the holders of the lock. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidArgumentError, StoreError } from 'holdfast';
import { checkOwner, durationMs, type HoldId, READ_WRITE_CAPACITY } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import { onNamespace } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { keepSecret, whenOver } from '../http/request-log.js';
import { closingProblem } from '../http/server.js';
import type { ServiceParts } from '../http/service-parts.js';
import { ref } from '../openapi/schema.js';
import { holdText } from '../waiting/holds.js';
import type { AcquireRequest, Outcome } from '../waiting/request-queues.js';
import { forClients, remainingOf } from '../waiting/service-client.js';
import { holdOf, idempotentHold, keyIn, LOCK_PATH, metadataOf, ttlOf } from './names.js';
import { acquireHeadersSchema, pathSchema } from './request-schemas.js';
import { described } from './schemas.js';
import { busyMembers } from './views.js';
import { lostRight, WaitingRights } from './waiting-rights.js';

interface AcquireBody {
  readonly ttl: number | string;
  readonly wait?: number | string;
  readonly owner?: string;
  readonly metadata?: object;
  readonly mode?: 'exclusive' | 'read' | 'write';
  readonly permits?: number;
  readonly capacity?: number;
  readonly hold?: string;
  readonly minHold?: number | string;
  readonly queue?: boolean;
}

/** It must not be guessable, because a hold, which is secret, is made from it. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{16,200}$/;

export function acquireRoute(app: FastifyInstance, parts: ServiceParts): void {
  const rights = new WaitingRights();
  app.route<{ Body: AcquireBody }>({
    method: 'POST',
    url: `${LOCK_PATH}/acquire`,
    config: onNamespace('lock'),
    schema: described({
      operationId: 'acquire',
      summary: 'Acquire a lock',
      description:
        'With `wait`, the request stays open until the lock is granted or the time is over. Waiters are served in order.',
      tags: ['Locks'],
      params: pathSchema,
      headers: acquireHeadersSchema,
      body: ref('AcquireRequest'),
      response: { 200: ref('Grant') },
      problems: ['busy', 'ended', 'superseded', 'reused'],
    }),
    handler: (request) => acquire(parts, rights, request),
  });
}

async function acquire(
  parts: ServiceParts,
  rights: WaitingRights,
  request: FastifyRequest<{ Body: AcquireBody }>,
): Promise<object> {
  const wanted = wantedOf(parts, rights, request);
  if (wanted.hold) keepSecret(request, wanted.hold.process);
  const { principal } = request;
  const { key, waitMs } = wanted;
  // `minHold` keeps the lock like a ttl does, so the same limit applies.
  const lifeMs = Math.max(wanted.ttlMs, wanted.minHoldMs);
  const own = wanted.hold ? { hold: holdText(wanted.hold) } : {};
  principal.checkTtl?.(key, lifeMs);
  const undertaking = { key, waitMs, shared: wanted.permits < wanted.capacity, ...own };
  const finish = await principal.undertake?.(undertaking, parts.client.tokensOf);
  const sinceMs = monotonicMs();
  try {
    const outcome = await parts.queues.acquire(wanted);
    request.note.waitedMs = monotonicMs() - sinceMs;
    request.note.outcome = outcomeName(outcome);
    if (waitMs > 0) checkStillMay(parts, request, wanted, outcome);
    if (outcome.kind === 'granted') {
      const { hold, reply } = outcome.grant;
      // A new grant is for this request, so there is nothing to compare, and the usual case stays one call.
      if (wanted.hold && reply.acquiredAt < reply.now) await checkSame(parts, wanted, reply.token);
      // The store's expiry counts: a repeated grant may live longer than this request asks for.
      principal.holds?.(key, holdText(hold), reply.expiresAt - reply.now, reply.token);
      if (!wanted.hold) giveBackUnlessSent(parts, request, wanted, hold);
    }
    return answer(wanted, outcome);
  } finally {
    finish?.();
  }
}

/** The outcome's name in the request log and in metrics. */
function outcomeName(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'failed':
      return outcome.error instanceof StoreError ? 'unknown' : 'refused';
    case 'aborted':
      return 'gone';
    case 'closed':
      return 'closing';
    default:
      return outcome.kind;
  }
}

/** The right to lock may have been revoked during the wait. Then the claim is withdrawn, and no holder is shown. */
function checkStillMay(
  { client }: ServiceParts,
  request: FastifyRequest,
  { key, ttlMs, hold: own }: AcquireRequest,
  outcome: Outcome,
): void {
  const problem = lostRight(request, key);
  if (!problem) return;
  const hold = outcome.kind === 'granted' ? outcome.grant.hold : own;
  // Not for a superseded request: another request waits with the same hold, and may have the right.
  if (hold && outcome.kind !== 'superseded') client.releases.withdraw(key, hold, ttlMs);
  request.note.outcome = 'forbidden';
  throw problem;
}

/**
 * A hold or Idempotency-Key that was used before returns the earlier grant, which may differ from this request. The stored
 * grant is compared, not the bodies: a request may be repeated with another `wait` or `ttl`.
 */
async function checkSame({ client }: ServiceParts, wanted: AcquireRequest, token: number): Promise<void> {
  const { key } = wanted;
  const holder = (await client.read(key))?.holders.find((each) => each.token === token);
  // The grant ended meanwhile: nothing to compare.
  if (!holder) return;
  const differing = (['owner', 'permits', 'capacity', 'metadata'] as const).filter(
    (name) => holder[name] !== wanted[name],
  );
  if (differing.length === 0) return;
  throw new Problem(
    'reused',
    `This hold or Idempotency-Key was granted the lock before, for a request that differs in: ${differing.join(', ')}. ` +
      'Use a new one for a new request.',
    { key },
  );
}

/** Releases a grant whose client never got the hold: otherwise it would stay until it expires (F5). */
function giveBackUnlessSent(
  { client }: ServiceParts,
  request: FastifyRequest,
  { key, ttlMs }: AcquireRequest,
  hold: HoldId,
): void {
  whenOver(request, (isSent) => {
    if (isSent) return;
    client.releases.withdraw(key, hold, ttlMs);
    request.principal.holds?.(key, holdText(hold), 0);
  });
}

function answer({ key, owner }: AcquireRequest, outcome: Outcome): object {
  switch (outcome.kind) {
    case 'granted': {
      const { hold, reply, sentMs } = outcome.grant;
      const { token, acquiredAt, expiresAt, now } = reply;
      const remainingMs = remainingOf(reply, sentMs);
      return { key, hold: holdText(hold), token, owner, acquiredAt, expiresAt, now, remainingMs };
    }
    case 'busy': {
      const { holders, answer } = outcome;
      const names = holders.map((holder) => holder.owner).join(', ');
      const detail = names === '' ? 'Others are before you.' : `Held by ${names}.`;
      throw new Problem('busy', detail, { key, members: answer ? busyMembers(answer) : {} });
    }
    case 'failed':
      throw outcome.error instanceof StoreError ? forClients(outcome.error, key) : outcome.error;
    case 'ended':
      throw new Problem(
        'ended',
        'This hold was released, withdrawn or has expired. Acquire with a new one.',
        { key },
      );
    case 'superseded':
      throw new Problem('superseded', 'A later request with the same hold waits in its place.', { key });
    case 'full':
      throw new Problem(
        'rate-limited',
        'Too many requests wait on this service. Try again later, or without `wait`.',
        { key },
      );
    case 'aborted':
      throw new Problem('client-gone', 'The connection ended before the response.', { key });
    case 'closed':
      throw closingProblem();
  }
}

function wantedOf(
  { limits }: ServiceParts,
  rights: WaitingRights,
  request: FastifyRequest<{ Body: AcquireBody }>,
): AcquireRequest {
  const { body, principal } = request;
  const key = keyIn(request);
  const minHoldMs = body.minHold === undefined ? 0 : durationMs(body.minHold, 'minHold', 0, limits.ttlMsMax);
  const waitMs = body.wait === undefined ? 0 : durationMs(body.wait, 'wait', 0, limits.waitMsMax);
  return {
    key,
    name: key,
    principal: principal.id,
    ...sharesOf(body),
    owner: body.owner === undefined ? principal.owner : checkOwner(body.owner),
    ttlMs: ttlOf(body.ttl, limits.ttlMsMax),
    waitMs,
    queue: body.queue ?? true,
    metadata: body.metadata === undefined ? null : metadataOf(body.metadata),
    minHoldMs,
    hold: holdIn(request, key, minHoldMs),
    // Without waiting there is nothing to abort.
    signal: waitMs > 0 ? rights.signalOf(request, key) : undefined,
    sinceMs: monotonicMs(),
  };
}

/** The client's own hold, or the hold of its Idempotency-Key. */
function holdIn(
  request: FastifyRequest<{ Body: AcquireBody }>,
  key: string,
  minHoldMs: number,
): HoldId | null {
  const own = request.body.hold;
  const idempotencyKey = request.headers['idempotency-key'];
  if (own !== undefined) {
    if (idempotencyKey !== undefined || minHoldMs > 0) {
      throw new InvalidArgumentError(
        'A request with `hold` has no Idempotency-Key, and no `minHold`: send that with the release.',
      );
    }
    return holdOf(own);
  }
  if (idempotencyKey === undefined) return null;
  if (typeof idempotencyKey !== 'string' || !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new InvalidArgumentError(
      'The Idempotency-Key has to be 16 to 200 visible characters that cannot be guessed, such as a UUID.',
    );
  }
  return idempotentHold(request.principal.id, key, idempotencyKey, minHoldMs);
}

function sharesOf({ mode, permits, capacity }: AcquireBody): {
  readonly permits: number;
  readonly capacity: number;
} {
  if (mode === 'read' || mode === 'write') {
    if (permits !== undefined || capacity !== undefined) {
      throw new InvalidArgumentError('permits and capacity are for semaphores: leave them out with a mode.');
    }
    return { permits: mode === 'read' ? 1 : READ_WRITE_CAPACITY, capacity: READ_WRITE_CAPACITY };
  }
  const most = capacity ?? 1;
  const wants = permits ?? 1;
  if (wants <= most) return { permits: wants, capacity: most };
  throw new InvalidArgumentError(`permits is ${wants}, but has to be at most the capacity, ${most}.`);
}
