/**
 * The request log: one line per request with id, address, principal, key, outcome and durations. A line is built from named
 * members only, so no header, body, query or hold gets into it. The only text from the client is its own request id, in a
 * member of its own.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { monotonicMs, soon } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';

/**
 * Facts that handlers add to the log line of their request. A class: an object that gets its members one by one is slow.
 */
class Note {
  key: string | undefined = undefined;
  /** The id in the API key that was sent, whether the key is good or not. */
  keyId: string | undefined = undefined;
  /** The outcome in one word: granted, busy, renewed, lost … */
  outcome: string | undefined = undefined;
  waitedMs: number | undefined = undefined;
  /** Secrets to remove from error texts. */
  secrets: string[] | undefined = undefined;
  /** Whether the line was written. */
  written = false;
  /** Functions to run when the request is over. */
  ends: ((isSent: boolean) => void)[] | undefined = undefined;
  /** Whether the connection is done with this request: it has its response, or will never get one. */
  isOver = false;
}

declare module 'fastify' {
  interface FastifyRequest {
    note: Note;
    startedMs: number;
  }
}

/** The status of a request whose connection ended before the response. */
const CLIENT_GONE = 499;
const REQUEST_ID = /^[\w.:-]{1,64}$/;

function clientRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : undefined;
}

/** Runs when the response was sent, or when its connection ended first; at once if that has happened. */
export function whenOver({ note }: FastifyRequest, run: (isSent: boolean) => void): void {
  if (note.isOver) run(false);
  else if (note.ends) note.ends.push(run);
  else note.ends = [run];
}

export function logRequests(app: FastifyInstance, log: Logger, events: ServiceEvents): void {
  function end(request: FastifyRequest, reply: FastifyReply): void {
    // One line per request, even if the connection ends during the response.
    if (request.note.written) return;
    request.note.written = true;
    const line = lineOf(request, reply, monotonicMs() - request.startedMs);
    const { method, route = 'none', status, outcome, durationMs } = line;
    log[status >= 500 ? 'warn' : 'info'](line, 'request');
    events.emit('request', { method, route, status, outcome, durationMs });
  }
  app.decorateRequest('note');
  app.decorateRequest('startedMs', 0);
  app.addHook('onRequest', (request, reply, done) => {
    request.note = new Note();
    request.startedMs = monotonicMs();
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    // The only listener, because each one costs. All other code uses `whenOver`.
    reply.raw.on('close', () => {
      const { note } = request;
      const isSent = reply.raw.writableFinished;
      note.isOver = true;
      for (const run of note.ends ?? []) run(isSent);
      // The framework does not report a connection that ended first. The handler gets a moment to set the outcome.
      if (!isSent) soon(() => end(request, reply));
    });
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    end(request, reply);
    done();
  });
}

function lineOf(request: FastifyRequest, { raw, statusCode }: FastifyReply, tookMs: number) {
  const { key, keyId, waitedMs, outcome } = request.note;
  const status = raw.headersSent ? statusCode : CLIENT_GONE;
  const usual = status < 400 ? 'ok' : 'refused';
  return {
    requestId: request.id,
    clientRequestId: clientRequestIdOf(request),
    method: request.method,
    route: request.routeOptions.url,
    status,
    address: request.ip,
    principal: request.principal?.id,
    keyId,
    key,
    outcome: outcome ?? (raw.headersSent ? usual : 'gone'),
    durationMs: rounded(tookMs),
    waitedMs: waitedMs === undefined ? undefined : rounded(waitedMs),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** Removes this text from error messages of the request. */
export function keepSecret(request: FastifyRequest, secret: string): void {
  const { note } = request;
  if (note.secrets) note.secrets.push(secret);
  else note.secrets = [secret];
}
