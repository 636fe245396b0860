/** The HTTP server: what holds for every request, whichever part answers it. */
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Bulletin } from '../bulletin.js';
import { newRequestId } from '../clock.js';
import { controlAccess } from './access.js';
import { followCertificate } from './certificates.js';
import { onClientError } from './client-errors.js';
import { Connections, closeUnused } from './connections.js';
import { keepJournal, scrubbed } from './journal.js';
import type { Limits } from './limits.js';
import { Methods } from './methods.js';
import { ANONYMOUS, type Authenticator } from './principal.js';
import { Problem } from './problem.js';
import { problemOf } from './problems.js';
import { proxiesOf } from './proxies.js';
import { capUnread } from './unread.js';

export interface ServerParts {
  readonly log: Logger;
  readonly limits: Limits;
  readonly bulletin: Bulletin;
  readonly auth: Authenticator | undefined;
  readonly closing: AbortSignal;
  /** Certificate and key, where the service itself speaks TLS. */
  readonly tls: Tls | undefined;
  readonly trustProxy: readonly string[];
  /** What a path is looked for as. */
  readonly rewriteUrl: (url: string) => string;
}

export interface Tls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Asked from time to time: what to use from now on, or null. What it throws is logged, and the old pair stays. */
  changed?(): Tls | null;
}

declare module 'fastify' {
  interface FastifyInstance {
    methods: Methods;
  }
}

/** How long nothing of an answer may be read; the framework looks twice. */
const UNREAD_MS = 10_000;
/** More than any head of a request has: names are looked at by the routes, which say what is wrong in their own words. */
const PARAMETER_LETTERS_MAX = 64 * 1_024;

export function makeServer(parts: ServerParts): FastifyInstance {
  const { log, limits, bulletin, auth, closing, tls, trustProxy } = parts;
  const isProxy = proxiesOf(trustProxy);
  const app = fastify({
    ...transportOf(limits, tls),
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    // What others say of where they come from is not heard.
    trustProxy: trustProxy.length > 0 ? isProxy : false,
    // A request that arrives on an open connection while we close gets a problem like any other.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    genReqId: newRequestId,
    rewriteUrl: ({ url = '/' }) => parts.rewriteUrl(url),
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    routerOptions: { maxParamLength: PARAMETER_LETTERS_MAX },
    // What was sent counts as it was sent: no member is dropped, no text becomes a number.
    ajv: {
      customOptions: {
        removeAdditional: false,
        coerceTypes: false,
        useDefaults: false,
        allErrors: false,
        discriminator: true,
      },
    },
    clientErrorHandler: onClientError(log),
    // What fails before any route is found: no hook runs, so that the line is written here.
    frameworkErrors: (error, request, reply) => {
      const problem = problemOf(error);
      const { id, method, ip: address } = request;
      log.info({ requestId: id, method, address, status: problem.status, outcome: problem.code }, 'request');
      reply.header('x-request-id', id);
      void answerProblem(reply as unknown as FastifyReply, request, problem);
    },
  });
  if (tls?.changed) followCertificate(app, tls, log);
  const connections = new Connections(limits, isProxy, log);
  connections.follow(app.server);
  closeUnused(app);
  app.removeContentTypeParser('text/plain');
  takeTurns(app);
  keepJournal(app, log, bulletin);
  app.addHook('onRequest', (_request, _reply, done) => {
    if (closing.aborted) done(closingProblem());
    else done();
  });
  // An answer that nobody reads is kept in memory: whoever asks for many and reads none could fill it.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.raw.socket?.setTimeout(UNREAD_MS);
    done();
  });
  capUnread(app);
  controlAccess(app, auth);
  // Of those who have not said who they are, but have to, no request keeps a connection open.
  app.addHook('preHandler', ({ principal, raw }, reply, done) => {
    if (!auth || principal !== ANONYMOUS) {
      reply.raw.once('close', connections.begin(raw.socket, auth ? principal.id : null));
    }
    done();
  });
  app.decorate('methods', new Methods(app));
  app.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error);
    noteTrouble(log, request, problem);
    return answerProblem(reply, request, problem);
  });
  app.setNotFoundHandler((request, reply) => answerProblem(reply, request, notHere(app, request)));
  return app;
}

/**
 * Requests that were sent one behind the other are begun one after the other. Of a client that goes away Node tells only
 * the one whose answer is due: those behind it would wait, hold and watch for nobody.
 */
function takeTurns(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, { raw }, done) => {
    if (raw.socket) {
      done();
      return;
    }
    raw.once('socket', () => {
      // That of the answer before it.
      raw.socket?.setTimeout(0);
      done();
    });
  });
}

function transportOf(limits: Limits, tls: Tls | undefined): { http?: object; https?: object } {
  const timeouts = {
    headersTimeout: limits.headersMs,
    // Node looks at its timeouts this often; every 30 s unless told.
    connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
    // A peer that vanished without a word is noticed, even while its request waits.
    keepAlive: true,
    keepAliveInitialDelay: 15_000,
  };
  // Node gives a handshake two minutes unless told, and looks at no other timeout before it is over.
  const secure = { ...timeouts, handshakeTimeout: limits.headersMs };
  return tls ? { https: { ...secure, cert: tls.cert, key: tls.key } } : { http: timeouts };
}

export function closingProblem(): Problem {
  return new Problem('closing', 'This service is closing. Ask again: another one may answer.', {
    headers: { connection: 'close' },
  });
}

function notHere(app: FastifyInstance, request: FastifyRequest): Problem {
  const allowed = app.methods.allowedOn(request.url);
  if (allowed.length === 0) return new Problem('not-found', 'There is nothing at this path. See /v2/docs.');
  const allow = allowed.join(', ');
  return new Problem('method-not-allowed', `Here work: ${allow}.`, { headers: { allow } });
}

function answerProblem(reply: FastifyReply, request: FastifyRequest, problem: Problem): FastifyReply {
  if (request.note) request.note.outcome ??= problem.code;
  return reply
    .code(problem.status)
    .headers({
      ...problem.headers,
      'content-type': 'application/problem+json; charset=utf-8',
      'cache-control': 'no-store',
    })
    .serializer(JSON.stringify)
    .send({ ...problem.body, requestId: request.id });
}

/** What the operator has to look at: what was not foreseen, and why the store did not answer. */
export function noteTrouble(log: Logger, request: FastifyRequest, problem: Problem): void {
  if (problem.status < 500 || problem.code === 'closing') return;
  const error = scrubbed(chain(problem), request.note?.secrets);
  const level = problem.code === 'internal' ? 'error' : 'warn';
  log[level]({ requestId: request.id, code: problem.code, key: problem.key, error }, 'trouble');
}

/** An error and what caused it, down to the one that says what happened. */
function chain(problem: Problem): string {
  const texts: string[] = [];
  let error: unknown = problem.cause ?? problem;
  while (error instanceof Error && texts.length < 5) {
    texts.push(error.stack ?? error.message);
    error = error.cause;
  }
  if (error !== undefined && error !== null && !(error instanceof Error)) texts.push(String(error));
  return texts.join('\ncaused by: ');
}
