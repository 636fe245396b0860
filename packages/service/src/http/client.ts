/** Whose request it is, for limits that hold with and without auth: a principal's, or else an address's. */
import type { FastifyRequest } from 'fastify';
import { neighbourhood } from './neighbourhood.js';
import { ANONYMOUS } from './principal.js';

export function clientOf({ principal, ip }: FastifyRequest): string {
  // A client that is gone already has no address any more.
  return principal && principal !== ANONYMOUS ? principal.id : neighbourhood(ip ?? '');
}
