/** Errors as clients of this contract know them: `{ message, details }` for a 400, else `{ message, errorId }`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Problem } from '../http/problem.js';
import { problemOf } from '../http/problems.js';
import { logProblem } from '../http/server.js';
import { Invalid, NOT_FOUND } from './contract.js';

/** The contract has one status for what is not the client's fault; these say that another process may answer. */
const PASSING: readonly string[] = ['closing', 'auth-unavailable'];

export function refuseInItsWords(app: FastifyInstance, log: Logger): void {
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof Invalid) {
      request.note.outcome = 'invalid-argument';
      return reply.code(400).send({ message: error.message, details: error.details });
    }
    const problem = problemOf(error);
    logProblem(log, request, problem);
    request.note.outcome ??= problem.code;
    const isOurFault = problem.status >= 500 && !PASSING.includes(problem.code);
    reply.headers({ ...problem.headers });
    if (isOurFault) return refuse(request, reply, 500, 'Internal server error');
    return refuse(request, reply, problem.status, problem.message);
  });
  app.setNotFoundHandler((request, reply) => notHere(app, request, reply));
}

function notHere(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ''] = request.url.split('?');
  // In this contract a path with a slash at its end is another path.
  const allowed = path.endsWith('/') ? [] : app.methods.allowedOn(path);
  const outcome: Problem['code'] = allowed.length === 0 ? 'not-found' : 'method-not-allowed';
  request.note.outcome = outcome;
  if (outcome === 'not-found') return refuse(request, reply, 404, NOT_FOUND);
  reply.header('allow', allowed.join(', '));
  return refuse(request, reply, 405, 'Method not allowed');
}

/** The id of the request, which the log has too. */
function refuse(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ message, errorId: request.id });
}
