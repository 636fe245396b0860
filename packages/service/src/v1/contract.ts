/** Validates paths and bodies, with the error texts of LockServiceCentral, word by word. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { Problem, problemOf } from '../http/problem.js';
import { logProblem } from '../http/server.js';

export interface Names {
  readonly namespace: string;
  readonly lockName: string;
}

export interface Wanted {
  readonly instanceId: string;
  /** 0 for a request without one. */
  readonly leaseDuration: number;
}

/** A 400: a message, and a detail for each finding. */
class Invalid extends Error {
  readonly details: readonly string[];

  constructor(message: string, details: readonly string[]) {
    super(message);
    this.name = 'Invalid';
    this.details = details;
  }
}

export const NAME = /^[a-zA-Z0-9_-]+$/;
export const LETTERS_MIN = 3;
export const LETTERS_MAX = 64;
const SHOWN_MAX = 64;
const NOT_FOUND = 'Resource not found';
export const LEASE_SECONDS_MAX = 86_400;

export function checkNames({ namespace, lockName }: Names): void {
  // A path with two slashes in a row, or with one at the end, is another path.
  if (namespace === '' || lockName === '') throw new Problem('not-found', NOT_FOUND);
  const details = [
    ...nameDetails('namespace', 'Namespace', namespace),
    ...nameDetails('lockName', 'Lock name', lockName),
  ];
  if (details.length > 0) throw new Invalid('Validation failed', details);
}

function nameDetails(parameter: string, words: string, text: string): string[] {
  const problems: string[] = [];
  if (!NAME.test(text)) problems.push('must be alphanumeric with dashes and underscores only');
  if (text.length < LETTERS_MIN || text.length > LETTERS_MAX) {
    problems.push(`must be between ${LETTERS_MIN} and ${LETTERS_MAX} characters long`);
  }
  return problems.map((problem) => `Parameter '${parameter}' failed validation: ${words} ${problem}`);
}

/** `secondsMax`: null if the body has no lease. */
export function wantedOf(text: unknown, secondsMax: number | null): Wanted {
  const body = parsed(text);
  const details = detailsOf(body, secondsMax);
  if (details.length > 0) throw new Invalid('JSON validation failed', details);
  const { instanceId, leaseDuration = 0 } = body as Partial<Wanted> & Pick<Wanted, 'instanceId'>;
  return { instanceId, leaseDuration };
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : '') as unknown;
  } catch (error) {
    // The parser's own message repeats a part of the body, which may have a secret.
    if (error instanceof SyntaxError) throw new Invalid('JSON validation failed', ['$: is not JSON']);
    throw error;
  }
}

function detailsOf(body: unknown, secondsMax: number | null): string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return [`$: ${typeOf(body)} found, object expected`];
  }
  const known = secondsMax === null ? ['instanceId'] : ['instanceId', 'leaseDuration'];
  const members = new Map(Object.entries(body));
  const details = [...members.keys()].filter((name) => !known.includes(name)).map(unknownMember);
  if (members.has('instanceId')) details.push(...instanceDetails(members.get('instanceId')));
  if (secondsMax !== null && members.has('leaseDuration')) {
    details.push(...leaseDetails(members.get('leaseDuration'), secondsMax));
  }
  const missing = known.filter((name) => !members.has(name));
  return details.concat(missing.map((name) => `$: required property '${name}' not found`));
}

function unknownMember(name: string): string {
  const shown = name.length > SHOWN_MAX ? `${name.slice(0, SHOWN_MAX)}…` : name;
  return `$: property '${shown}' is not defined in the schema and the schema does not allow additional properties`;
}

function instanceDetails(value: unknown): string[] {
  if (typeof value !== 'string') return [`$.instanceId: ${typeOf(value)} found, string expected`];
  const problems: string[] = [];
  if (value.length < LETTERS_MIN) problems.push(`must be at least ${LETTERS_MIN} characters long`);
  if (value.length > LETTERS_MAX) problems.push(`must be at most ${LETTERS_MAX} characters long`);
  if (!NAME.test(value)) problems.push(`does not match the regex pattern ${NAME.source}`);
  return problems.map((problem) => `$.instanceId: ${problem}`);
}

function leaseDetails(value: unknown, secondsMax: number): string[] {
  if (!Number.isInteger(value)) return [`$.leaseDuration: ${typeOf(value)} found, integer expected`];
  const seconds = Number(value);
  if (seconds < 1) return ['$.leaseDuration: must have a minimum value of 1'];
  if (seconds > secondsMax) return [`$.leaseDuration: must have a maximum value of ${secondsMax}`];
  return [];
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (Number.isInteger(value)) return 'integer';
  return typeof value;
}

/** The contract has status 500 for all failures of the service except these: another instance may answer. */
const PASSING: readonly string[] = ['closing', 'auth-unavailable'];

/** Errors in the form of this contract: `{ message, details }` for a 400, else `{ message, errorId }`. */
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
  request.note.outcome = allowed.length === 0 ? 'not-found' : 'method-not-allowed';
  if (allowed.length === 0) return refuse(request, reply, 404, NOT_FOUND);
  reply.header('allow', allowed.join(', '));
  return refuse(request, reply, 405, 'Method not allowed');
}

/** `errorId` is the id of the request, as in the log. */
function refuse(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ message, errorId: request.id });
}
