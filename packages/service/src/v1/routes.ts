/** The four routes: inspect, acquire, renew, release. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { monotonicMs } from '../clock.js';
import { onNamespace, type TokensOf } from '../http/principal.js';
import { keepSecret } from '../http/request-log.js';
import type { ServiceParts } from '../http/service-parts.js';
import { holdText } from '../waiting/holds.js';
import type { ServiceClient } from '../waiting/service-client.js';
import { checkNames, LEASE_SECONDS_MAX, type Names, type Wanted, wantedOf } from './contract.js';
import { HoldLeases } from './hold-leases.js';
import { InstanceLeases } from './instance-leases.js';
import type { Identity, Lease, Leases } from './leases.js';
import { type Action, actionDescription, inspectDescription, v1Schemas } from './schemas.js';

const PATH = '/:namespace/lock/:lockName';

interface Result {
  readonly success: boolean;
  /** Members of the answer besides success and names. */
  readonly members?: object;
}

type Act = (request: FastifyRequest, who: Identity, wanted: Wanted) => Promise<Result>;

export function lockRoutes(app: FastifyInstance, parts: ServiceParts): void {
  const leases = leasesOn(parts.client);
  const secondsMax = Math.max(1, Math.min(LEASE_SECONDS_MAX, Math.floor(parts.limits.ttlMsMax / 1_000)));
  for (const schema of v1Schemas(secondsMax)) app.addSchema(schema);
  app.route({
    method: ['GET', 'HEAD'],
    url: PATH,
    config: onNamespace('read'),
    schema: inspectDescription,
    handler: async (request) => {
      const { namespace, lockName, key } = lockIn(request);
      return { namespace, lockName, ...(await leases.look(key)) };
    },
  });
  actionRoute(app, 'acquire', secondsMax, acquireWith(leases, parts));
  actionRoute(app, 'renew', secondsMax, renewWith(leases, parts));
  actionRoute(app, 'release', null, releaseWith(leases, parts));
}

function leasesOn(client: ServiceClient): Leases {
  const { instances } = client.store;
  return instances ? new InstanceLeases(client, instances) : new HoldLeases(client);
}

function actionRoute(app: FastifyInstance, name: Action, secondsMax: number | null, act: Act): void {
  app.route({
    method: 'POST',
    url: `${PATH}/${name}`,
    config: onNamespace('lock', name === 'acquire' ? 'request' : 'failure'),
    schema: actionDescription(name),
    handler: async (request, reply) => {
      const wanted = wantedOf(request.body, secondsMax);
      const { namespace, lockName, key } = lockIn(request);
      keepSecret(request, wanted.instanceId);
      const { owner, id: principal } = request.principal;
      const who = { key, owner, principal, instanceId: wanted.instanceId };
      const { success, members } = await act(request, who, wanted);
      return reply.code(success ? 200 : 423).send({ success, namespace, lockName, ...members });
    },
  });
}

function lockIn(request: FastifyRequest): Names & { readonly key: string } {
  const { namespace, lockName } = request.params as Names;
  checkNames({ namespace, lockName });
  const key = `${namespace}/${lockName}`;
  request.note.key = key;
  return { namespace, lockName, key };
}

function acquireWith(leases: Leases, parts: ServiceParts): Act {
  const { events, client } = parts;
  return async (request, who, { leaseDuration }) => {
    const { key } = who;
    const finish = await undertake(leases, client.tokensOf, request, who, leaseDuration);
    const sinceMs = monotonicMs();
    try {
      const lease = await leases.acquire(who, leaseDuration);
      const waitedMs = monotonicMs() - sinceMs;
      request.note.outcome = lease ? 'granted' : 'busy';
      if (!lease) {
        events.emit('contended', { key });
        events.emit('refused', { key, waitedMs });
        return { success: false };
      }
      events.emit('acquired', { key, waitedMs });
      return held(request, who, lease, leaseDuration, parts);
    } finally {
      finish();
    }
  };
}

/** A principal at its limit may still acquire again a lock that it holds. */
async function undertake(
  leases: Leases,
  tokensOf: TokensOf,
  { principal }: FastifyRequest,
  who: Identity,
  seconds: number,
): Promise<() => void> {
  const { key } = who;
  const nothing = (): void => undefined;
  principal.checkTtl?.(key, seconds * 1_000);
  try {
    return (await principal.undertake?.({ key, waitMs: 0 }, tokensOf)) ?? nothing;
  } catch (problem) {
    if (await leases.holdOf(who)) return nothing;
    throw problem;
  }
}

function renewWith(leases: Leases, parts: ServiceParts): Act {
  return async (request, who, { leaseDuration }) => {
    const { key } = who;
    const { principal } = request;
    const lease = await leases.renew(who, leaseDuration, {
      check: (ttlMs) => principal.checkTtl?.(key, ttlMs),
      ttlMsMax: principal.ttlMsMax ?? Number.POSITIVE_INFINITY,
    });
    request.note.outcome = lease ? 'renewed' : 'lost';
    if (lease) return held(request, who, lease, leaseDuration, parts);
    parts.holds.lost(key, nameOf(who));
    return { success: false };
  };
}

function held(
  { principal }: FastifyRequest,
  who: Identity,
  { hold, leaseDuration, expiry }: Lease,
  seconds: number,
  { events, holds }: ServiceParts,
): Result {
  const { key, owner, instanceId } = who;
  holds.held(key, nameOf(who));
  principal.holds?.(key, holdText(hold), Math.max(seconds, leaseDuration) * 1_000);
  events.emit('touched', { key });
  return { success: true, members: { owner, instanceId, leaseDuration, expiry } };
}

function releaseWith(leases: Leases, { events, holds }: ServiceParts): Act {
  return async ({ principal, note }, who) => {
    const { key } = who;
    const ended = await leases.release(who);
    note.outcome = ended === false ? 'busy' : ended ? 'released' : 'not-held';
    if (ended === false) return { success: false };
    if (ended) {
      principal.holds?.(key, holdText(ended), 0);
      events.emit('touched', { key });
    }
    holds.released(key, nameOf(who), ended !== null);
    return { success: true };
  };
}

/** A name for events: a renewal knows its instance, but not its earlier hold. */
function nameOf({ principal, instanceId }: Identity): string {
  return `${principal} ${instanceId}`;
}
