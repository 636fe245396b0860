/** Access control: every request gets a principal, and every route declares what it needs. Default deny. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ANONYMOUS, type Authenticator, type Needs, type Principal, type Role } from './principal.js';
import { Problem } from './problem.js';
import { whenOver } from './request-log.js';

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal;
    may(role: Role, namespace: string): boolean;
  }
  interface FastifyContextConfig extends Partial<Needs> {}
}

export function controlAccess(app: FastifyInstance, auth: Authenticator | undefined): void {
  app.decorateRequest('principal');
  app.decorateRequest('may', function may(this: FastifyRequest, role: Role, namespace: string): boolean {
    return this.principal.may(role, namespace);
  });
  app.addHook('onRequest', (request, reply, done) => {
    const needs = request.routeOptions.config;
    const enter = (principal: Principal): Problem | undefined | Promise<Problem | undefined> => {
      request.principal = principal;
      const turn = principal === ANONYMOUS ? null : counted(needs, request, reply);
      return turn ? turn.then(() => denial(request, needs)) : denial(request, needs);
    };
    const isOpen = !auth || needs.needs === 'public' || request.is404;
    const principal = isOpen ? ANONYMOUS : auth.authenticate(request);
    // An API key is checked without waiting, so that the usual request is not delayed.
    const outcome = principal instanceof Promise ? principal.then(enter) : enter(principal);
    if (outcome instanceof Promise) outcome.then(done, done);
    else done(outcome);
  });
}

/** Counts the request against the rate of its principal. Returns a promise if the request has to wait for its turn. */
function counted(
  { counts = 'request' }: Partial<Needs>,
  request: FastifyRequest,
  { raw }: FastifyReply,
): Promise<unknown> | null | undefined {
  const { principal, note } = request;
  if (counts === 'request') {
    principal.request?.();
    return null;
  }
  if (counts === 'failure' && principal.spend) {
    whenOver(request, () => {
      const hadEffect = note.outcome === 'renewed' || note.outcome === 'released';
      // An unanswered call of the store is not the client's fault.
      if (!hadEffect && raw.statusCode < 500) principal.spend?.(1);
    });
  }
  return principal.turn?.(() => new Promise((resolve) => whenOver(request, () => resolve())));
}

function denial(request: FastifyRequest, { needs, scope }: Partial<Needs>): Problem | undefined {
  if (request.is404 || needs === 'public') return undefined;
  if (needs === undefined)
    return new Problem('forbidden', 'This route declares no access rule, so all requests are refused.');
  const namespace = scope?.(request) ?? null;
  return namespace === null ? undefined : refusal(request, needs, namespace);
}

/**
 * Refuses a namespace on which the principal lacks the right. The store is not read, so neither text nor response time shows
 * whether a lock is held.
 */
export function refusal(request: FastifyRequest, role: Role, namespace: string): Problem | undefined {
  if (request.may(role, namespace)) return undefined;
  return new Problem('forbidden', `${request.principal.id} has no right "${role}" on this namespace.`);
}
