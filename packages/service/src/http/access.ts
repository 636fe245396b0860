/** Access control: every request gets a principal, and every route declares what it needs. Default deny. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ANONYMOUS, type Authenticator, type Needs, type Principal, type Role } from './principal.js';
import { Problem } from './problem.js';

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
    const { needs } = request.routeOptions.config;
    if (!auth || needs === 'public' || request.is404) {
      request.principal = ANONYMOUS;
      done(denial(request));
      return;
    }
    identify(auth, request, reply).then(
      () => done(denial(request)),
      (error: Error) => done(error),
    );
  });
}

async function identify(auth: Authenticator, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const principal = await auth.authenticate(request);
  request.principal = principal;
  const { counts = 'request' } = request.routeOptions.config;
  if (counts === 'request') {
    principal.request?.();
    return;
  }
  const over = new Promise<void>((resolve) => {
    reply.raw.once('close', () => {
      if (counts === 'failure' && hadNoEffect(request, reply)) principal.spend?.(1);
      resolve();
    });
  });
  // A client that has left emits no 'close'.
  if (!reply.raw.destroyed) await principal.turn?.(over);
}

/** Nothing was renewed or released, by the client's fault: an unanswered call of the store does not count. */
function hadNoEffect({ note }: FastifyRequest, { raw }: FastifyReply): boolean {
  return note.outcome !== 'renewed' && note.outcome !== 'released' && raw.statusCode < 500;
}

function denial(request: FastifyRequest): Problem | undefined {
  if (request.is404) return undefined;
  const { needs, scope } = request.routeOptions.config;
  if (needs === 'public') return undefined;
  if (needs === undefined)
    return new Problem('forbidden', 'This route declares no access, so nobody may use it.');
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
