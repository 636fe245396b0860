/** What an answer that is none means: a refusal, or that nobody knows what happened. */
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';

/** The service's own words, as `application/problem+json`. */
export interface Problem {
  readonly code: string;
  readonly detail: string;
}

/** The request as it is was refused, before anything was done: parts of it may pass. */
export class RefusedRequestError extends UnsupportedError {
  constructor(message: string) {
    super(message);
    // For those who see it, it is a refusal like any other.
    this.name = 'UnsupportedError';
  }
}

/** A proxy's page may be long. */
const SHOWN_MAX = 200;

/** Nothing was done, and asking again will not help. */
const REFUSALS = new Set([400, 401, 403, 404, 405, 406, 413, 414, 415, 431, 501]);
const REFUSAL_CODES = new Set([
  'invalid-argument',
  'unauthorized',
  'forbidden',
  'not-found',
  'method-not-allowed',
  'too-large',
  'unsupported-media-type',
  'unsupported',
]);

/** Answered for one command of a batch, or for a whole request. */
export function errorOf({ code, detail }: Problem, key?: string): Error {
  if (REFUSAL_CODES.has(code)) return new UnsupportedError(detail, { key });
  return new Error(`The service did not answer the command: ${detail} (${code})`);
}

export function problemIn(body: unknown): Problem | null {
  if (typeof body !== 'object' || body === null || !('code' in body) || typeof body.code !== 'string')
    return null;
  const detail = 'detail' in body && typeof body.detail === 'string' ? body.detail : 'no reason given';
  return { code: body.code, detail };
}

export interface Failure {
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
  /** The body, as it came. */
  readonly text: string;
  readonly problem: Problem | null;
}

/** For every status that is not a success. */
export function errorOfStatus({ url, status, location, text, problem }: Failure): Error {
  const said = problem ? problem.detail : shown(text);
  const because = said === '' ? '' : ` (${said})`;
  if (status === 0 || (status >= 300 && status < 400)) {
    const where = location === null ? '' : ` to ${shown(location)}`;
    return new UnsupportedError(`${url} redirects${where}. Give httpStore the address where the service is.`);
  }
  if (!REFUSALS.has(status))
    return new Error(`The service at ${url} answered with status ${status}${because}.`);
  if (status === 401) {
    return new UnsupportedError(
      `The service at ${url} does not know who asks${because}. Give httpStore a valid key or token; with a URL, set HOLDFAST_API_KEY.`,
    );
  }
  if (status === 403) {
    return new UnsupportedError(
      `The service at ${url} does not allow this${because}. Use a key that may do it.`,
    );
  }
  if (problem?.code === 'unsupported') return new UnsupportedError(problem.detail);
  if (status === 404 || status === 405 || status === 406 || status === 501) {
    return new UnsupportedError(
      `There is no Holdfast service at ${url}, or another version of it: status ${status}${because}. Check the url.`,
    );
  }
  return new RefusedRequestError(`The service at ${url} refuses the request: status ${status}${because}.`);
}

/** Something answered a success, and it was not the service. */
export function noJson(url: string, type: string | null, text: string, cause?: unknown): Error {
  const what = type === null ? 'something' : shown(type);
  const begins = text === '' ? 'an empty body' : `"${shown(text)}"`;
  return new Error(`${url} answered ${what} that is no JSON: ${begins}. Is a proxy in between?`, { cause });
}

/** `another`: there is another service that may be asked at once. */
export function notReached(url: string, cause: unknown, another: boolean): Error {
  const text = `The service at ${url} was not reached: ${wordsOf(cause)}.`;
  const certain = notExecuted(cause);
  if (!certain) return new Error(text, { cause });
  return new NotExecutedError(
    `${text} Is it running, and is that its address?`,
    another ? 'at-once' : certain.retry,
    cause,
  );
}

/** `fetch` itself says no more than that it failed. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return wordsOf(error.cause);
  if (error instanceof AggregateError && error.message === '') return error.errors.map(wordsOf).join('; ');
  return error.message || error.name;
}

function shown(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line;
}
