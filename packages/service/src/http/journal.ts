/**
 * One log line per request: id, address, principal, key, outcome, durations. A line is put together from named members only, so
 * that no header, body, query or hold can get into it, but for the id that a client may give its request. That one is a
 * member of its own: what clients choose could be another's.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Bulletin } from '../bulletin.js';
import { monotonicMs, soon } from '../clock.js';
import { blanked } from '../lines/concealment.js';

/** What handlers note for the line of their request. */
export interface Note {
  key?: string;
  /** The id in the API key that was sent, whether the key is good or not. */
  keyId?: string;
  /** What came of it, in a word: granted, busy, renewed, lost … */
  outcome?: string;
  waitedMs?: number;
  /** What must not be seen should an error's text repeat it. */
  secrets?: string[];
  /** The line is there. */
  written?: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    note: Note;
    startedMs: number;
  }
}

/** The connection ended before anything was answered. */
const CLIENT_GONE = 499;
const REQUEST_ID = /^[\w.:-]{1,64}$/;

function clientRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : undefined;
}

export function keepJournal(app: FastifyInstance, log: Logger, bulletin: Bulletin): void {
  function end(request: FastifyRequest, reply: FastifyReply): void {
    // A connection may end while the last of the answer is on its way: still one line.
    if (request.note.written) return;
    request.note.written = true;
    const line = lineOf(request, reply, monotonicMs() - request.startedMs);
    const { method, route = 'none', status, outcome, durationMs } = line;
    log[status >= 500 ? 'warn' : 'info'](line, 'request');
    bulletin.tell('request', { method, route, status, outcome, durationMs });
  }
  app.decorateRequest('note');
  app.decorateRequest('startedMs', 0);
  app.addHook('onRequest', (request, reply, done) => {
    request.note = {};
    request.startedMs = monotonicMs();
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    // The framework tells nothing of a connection that ended first. Its handler has a moment to say what came of it.
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) soon(() => end(request, reply));
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
  const came = status < 400 ? 'ok' : 'refused';
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
    outcome: outcome ?? (raw.headersSent ? came : 'gone'),
    durationMs: rounded(tookMs),
    waitedMs: waitedMs === undefined ? undefined : rounded(waitedMs),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** What must not be seen, should an error's text repeat it. */
export function keepSecret(request: FastifyRequest, secret: string): void {
  request.note.secrets = [...(request.note.secrets ?? []), secret];
}

/** An error's text with what is secret in it blanked. */
export function scrubbed(text: string, secrets: readonly string[] | undefined): string {
  return secrets ? blanked(text, secrets) : text;
}
