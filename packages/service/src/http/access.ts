/** Every request gets a principal, and every route says what it needs: default deny. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
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
  app.addHook('onRequest', (request, _reply, done) => {
    const { needs } = request.routeOptions.config;
    if (!auth || needs === 'public' || request.is404) {
      request.principal = ANONYMOUS;
      done(denial(request));
      return;
    }
    identify(auth, request).then(
      () => done(denial(request)),
      (error: Error) => done(error),
    );
  });
}

async function identify(auth: Authenticator, request: FastifyRequest): Promise<void> {
  request.principal = await auth.authenticate(request);
}

function denial(request: FastifyRequest): Problem | undefined {
  if (request.is404) return undefined;
  const { needs, scope } = request.routeOptions.config;
  if (needs === 'public') return undefined;
  if (needs === undefined) return new Problem('forbidden', 'Nobody may use this: it does not say who may.');
  const namespace = scope?.(request) ?? null;
  return namespace === null ? undefined : refusal(request, needs, namespace);
}

/**
 * The refusal of a namespace on which the principal has no such right. Said without a look at the store: neither the
 * words nor the time they take tell a lock that is held from one that is free.
 */
export function refusal(request: FastifyRequest, role: Role, namespace: string): Problem | undefined {
  if (request.may(role, namespace)) return undefined;
  return new Problem('forbidden', `${request.principal.id} has no "${role}" on this namespace.`);
}
