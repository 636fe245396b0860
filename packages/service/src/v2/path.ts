/** What every route on one lock has in common: its path, its key, and who may use it. */
import type { FastifyRequest } from 'fastify';
import { refusal } from '../http/access.js';
import type { Needs, Role } from '../http/principal.js';
import { keyOf } from './names.js';

export const LOCK_PATH = '/v2/locks/:namespace/:name';

interface LockParams {
  readonly namespace: string;
  readonly name: string;
}

export function onLock(needs: Role, counts: Needs['counts'] = 'request'): Needs {
  return { needs, counts, scope: (request) => (request.params as LockParams).namespace };
}

/** The key in the path, noted for the log. */
export function keyIn(request: FastifyRequest): string {
  const { namespace, name } = request.params as LockParams;
  const key = keyOf(namespace, name);
  request.note.key = key;
  return key;
}

/** Throws for a namespace that somebody names without a right to read it: "nothing is held" would be no true answer. */
export function refuseForeign(request: FastifyRequest, namespace: string): void {
  const problem = refusal(request, 'read', namespace);
  if (problem) throw problem;
}
