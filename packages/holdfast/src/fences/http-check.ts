/**
 * Makes an HTTP server refuse requests with a stale token: a check in front of its handlers, for Express (and what has the
 * same middleware), Fastify, and the `Request` of the web.
 *
 * It compares when a request arrives. A handler that is paused after that, and then writes, is not stopped: a handler that
 * writes to a database passes the token on to a guard there, in the transaction of the write.
 */
import { InvalidArgumentError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { wallMs } from '../time.js';
import type { FenceStore } from './fence-stores.js';
import { type Fencing, fencingOf, PROBLEM_TYPE, type RequestHeaders, STALE } from './http-header.js';

/** Options of `fencingCheck`. */
export interface FencingCheckOptions<R> {
  /** Keeps the highest token of each key. */
  readonly store: FenceStore;
  /** Whether a request that writes is refused without the header. Default true. */
  readonly required?: boolean;
  /** The key that a request has to name. Default: any. Otherwise a sender may name a key that nobody else uses. */
  readonly key?: (request: R) => string;
}

/** A request, as far as the check needs it. GET, HEAD and OPTIONS pass unchecked. */
export interface CheckedRequest extends RequestHeaders {
  readonly method?: string | undefined;
}

interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

interface FastifyReply {
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

/** Refuses requests whose token is stale, in Express, Fastify or a route handler. */
export interface FencingCheck<R = unknown> {
  /** The response to a request that is refused, or null for one that may go on. */
  request(request: R & CheckedRequest): Promise<Response | null>;
  /** Middleware of Express. */
  express(request: R & CheckedRequest, response: NodeResponse, next: (error?: unknown) => void): void;
  /** A `preHandler` hook of Fastify, for a route or for all. */
  fastify(request: R & CheckedRequest, reply: FastifyReply): Promise<unknown>;
}

interface Refusal {
  readonly status: 400 | 412 | 428;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly fencing?: Fencing;
}

/** Tokens are microseconds. One from far ahead would have the key refuse everybody until then. */
const AHEAD_MS_MAX = 24 * 3_600_000;
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * A check for a service that others call under a lock: requests that write carry key and token in a header, and a
 * stale one is refused.
 */
export function fencingCheck<R = unknown>(options: FencingCheckOptions<R>): FencingCheck<R> {
  checkOptionNames(options, ['store', 'required', 'key']);
  const { store, required = true, key } = options;
  if (typeof store?.raise !== 'function') {
    throw new InvalidArgumentError(
      'fencingCheck needs a store with the method raise: memoryFences(), sqlFences(…), redisFences(…) or your own.',
    );
  }

  async function check(request: R & CheckedRequest): Promise<Refusal | null> {
    if (SAFE_METHODS.includes(request.method ?? '')) return null;
    const found = readFencing(request);
    if (found === null) return required ? MISSING : null;
    if ('status' in found) return found;
    const expected = key?.(request).normalize('NFC');
    if (expected !== undefined && expected !== found.key) return otherKey(found, expected);
    if (found.token > (wallMs() + AHEAD_MS_MAX) * 1_000) return fromAhead(found);
    return (await store.raise(found.key, found.token)) ? null : stale(found);
  }

  return {
    async request(request) {
      const refusal = await check(request);
      if (refusal === null) return null;
      const headers = { 'content-type': PROBLEM_TYPE };
      return new Response(bodyOf(refusal), { status: refusal.status, headers });
    },
    express(request, response, next) {
      check(request)
        .then((refusal) => {
          if (refusal === null) return next();
          response.statusCode = refusal.status;
          response.setHeader('content-type', PROBLEM_TYPE);
          response.end(bodyOf(refusal));
        })
        .catch(next);
    },
    async fastify(request, reply) {
      const refusal = await check(request);
      if (refusal === null) return;
      reply.code(refusal.status);
      reply.header('content-type', PROBLEM_TYPE);
      reply.send(bodyOf(refusal));
      // Fastify then calls no handler.
      return reply;
    },
  };
}

function readFencing(request: CheckedRequest): Fencing | Refusal | null {
  try {
    return fencingOf(request);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const title = 'The fencing token is malformed';
    return { status: 400, code: 'invalid-argument', title, detail: error.message };
  }
}

const MISSING: Refusal = {
  status: 428,
  code: 'fencing-token-required',
  title: 'A fencing token is required',
  detail:
    'Acquire the lock of the resource that you write to, and send its key and token in the header Fencing-Token.',
};

function otherKey(fencing: Fencing, expected: string): Refusal {
  const title = 'The fencing token is that of another key';
  const detail = `This request needs the lock "${expected}", and carries a token of "${fencing.key}".`;
  return { status: 400, code: 'invalid-argument', title, detail, fencing };
}

function fromAhead(fencing: Fencing): Refusal {
  const title = 'The fencing token is from the future';
  const detail = `Token ${fencing.token} is more than a day ahead of this clock: tokens are microseconds since 1970.`;
  return { status: 400, code: 'invalid-argument', title, detail, fencing };
}

function stale(fencing: Fencing): Refusal {
  const title = 'The fencing token is stale';
  const detail = `A later holder of "${fencing.key}" has written. Nothing was done with token ${fencing.token}. Stop.`;
  return { status: 412, code: STALE, title, detail, fencing };
}

function bodyOf({ status, code, title, detail, fencing }: Refusal): string {
  return JSON.stringify({ type: `urn:holdfast:problem:${code}`, title, status, detail, code, ...fencing });
}
