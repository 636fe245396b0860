/** The HTTP server: rules for the requests of all parts. */
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { newRequestId } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import { blanked } from '../waiting/observed-store.js';
import { controlAccess } from './access.js';
import { proxiesOf } from './addresses.js';
import { followCertificate, type Tls } from './certificates.js';
import { onClientError } from './client-errors.js';
import { Connections, closeUnused } from './connections.js';
import type { Limits } from './limits.js';
import { ANONYMOUS, type Authenticator } from './principal.js';
import { Problem, problemOf } from './problem.js';
import { logRequests, whenOver } from './request-log.js';
import { compilersFactory } from './schema-compilers.js';
import { capUnread, disconnectUnread } from './unread.js';

export interface ServerParts {
  readonly log: Logger;
  readonly limits: Limits;
  readonly events: ServiceEvents;
  readonly auth: Authenticator | undefined;
  readonly closing: AbortSignal;
  /** Certificate and key, if the service itself speaks TLS. */
  readonly tls: Tls | undefined;
  readonly trustProxy: readonly string[];
  /** Changes a URL before it is routed. */
  readonly rewriteUrl: (url: string) => string;
}

declare module 'fastify' {
  interface FastifyInstance {
    methods: Methods;
  }
}

/** How many requests of a connection may wait behind one that is not answered yet. */
const PIPELINED_MAX = 100;
/** Longer than any request head: the routes check names themselves, with their own messages. */
const PARAMETER_LETTERS_MAX = 64 * 1_024;

export function makeServer(parts: ServerParts): FastifyInstance {
  const { log, limits, events, auth, closing, tls, trustProxy } = parts;
  const isProxy = proxiesOf(trustProxy);
  const app = fastify({
    ...transportOf(limits, tls),
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    // Only trusted proxies may name the client's address.
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
    schemaController: { compilersFactory },
    // Bodies are used as sent: no member is dropped, no text becomes a number.
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
    // Errors before any route is found: no hook runs, so the log line is written here.
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
  startInOrder(app, log);
  logRequests(app, log, events);
  app.addHook('onRequest', (_request, _reply, done) => {
    if (closing.aborted) done(closingProblem());
    else done();
  });
  // A client that keeps its connection open would delay the closing.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing.aborted) reply.header('connection', 'close');
    done();
  });
  disconnectUnread(app);
  capUnread(app);
  controlAccess(app, auth);
  // An unauthenticated request does not keep a connection open, if the service has authentication.
  app.addHook('preHandler', (request, _reply, done) => {
    const { principal, raw } = request;
    if (!auth || principal !== ANONYMOUS) {
      whenOver(request, connections.begin(raw.socket, auth ? principal.id : null));
    }
    done();
  });
  app.decorate('methods', new Methods(app));
  app.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error);
    logProblem(log, request, problem);
    return answerProblem(reply, request, problem);
  });
  app.setNotFoundHandler((request, reply) => answerProblem(reply, request, notFound(app, request)));
  return app;
}

/**
 * Starts pipelined requests one after the other. When a client leaves, Node reports only the request whose response is
 * due: the requests behind it would wait, hold and watch for nobody (F5). They are in memory, and not authenticated yet,
 * so a client with too many is disconnected. If the service stopped reading, it would not notice that the client leaves.
 */
function startInOrder(app: FastifyInstance, log: Logger): void {
  const behind = new WeakMap<object, number>();
  app.addHook('onRequest', ({ raw: { socket } }, { raw }, done) => {
    if (raw.socket) {
      done();
      return;
    }
    const count = (behind.get(socket) ?? 0) + 1;
    behind.set(socket, count);
    if (count > PIPELINED_MAX) {
      if (!socket.destroyed) log.warn({ address: socket.remoteAddress }, 'too many pipelined requests');
      socket.destroy();
      return;
    }
    raw.once('socket', () => {
      behind.set(socket, (behind.get(socket) ?? 1) - 1);
      // This timeout was set for the response before it.
      raw.socket?.setTimeout(0);
      done();
    });
  });
}

function transportOf(limits: Limits, tls: Tls | undefined): { http?: object; https?: object } {
  const timeouts = {
    headersTimeout: limits.headersMs,
    // How often Node checks its timeouts. Default 30 s.
    connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
    // Notices a client that vanished, even while its request waits.
    keepAlive: true,
    keepAliveInitialDelay: 15_000,
  };
  // Default two minutes, and Node checks no other timeout during the handshake.
  const secure = { ...timeouts, handshakeTimeout: limits.headersMs };
  return tls ? { https: { ...secure, cert: tls.cert, key: tls.key } } : { http: timeouts };
}

export function closingProblem(): Problem {
  return new Problem('closing', 'This service is closing. Try again: another instance may answer.', {
    headers: { connection: 'close' },
  });
}

function notFound(app: FastifyInstance, request: FastifyRequest): Problem {
  const allowed = app.methods.allowedOn(request.url);
  if (allowed.length === 0) return new Problem('not-found', 'There is nothing at this path. See /v2/docs.');
  const allow = allowed.join(', ');
  return new Problem('method-not-allowed', `Allowed methods: ${allow}.`, { headers: { allow } });
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

/** Logs problems for the operator: unexpected errors, and why the store did not answer. */
export function logProblem(log: Logger, request: FastifyRequest, problem: Problem): void {
  if (problem.status < 500 || problem.code === 'closing') return;
  const error = blanked(chain(problem), request.note?.secrets ?? []);
  const level = problem.code === 'internal' ? 'error' : 'warn';
  log[level]({ requestId: request.id, code: problem.code, key: problem.key, error }, 'problem');
}

/** An error and its causes. */
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

/** Distinguishes an unknown path (404) from a method that the path does not allow (405). */
class Methods {
  readonly #routes: { readonly pattern: RegExp; readonly method: string }[] = [];

  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const pattern = new RegExp(`^${url.split('/').map(segment).join('/')}$`);
      for (const name of [method].flat()) this.#routes.push({ pattern, method: name });
    });
  }

  /** The methods allowed on the path of this URL. */
  allowedOn(url: string): readonly string[] {
    const path = url.split('?')[0] ?? url;
    const allowed = this.#routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    return [...new Set(allowed)].sort();
  }
}

function segment(text: string): string {
  if (text === '*') return '.*';
  return text.startsWith(':') ? '[^/]+' : text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
