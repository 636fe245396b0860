/**
 * Without auth the service is for this machine alone. A web page that this machine's browser shows must not reach it
 * either: by a name of its own that it lets point here, a page could otherwise act as if it came from here.
 */
import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

export function answerLoopbackNamesOnly(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const name = request.hostname;
    if (name === '' || isLoopback(name)) done();
    else
      done(
        new Problem('forbidden', 'Without auth this service answers to localhost, 127.0.0.1 and [::1] only.'),
      );
  });
}
