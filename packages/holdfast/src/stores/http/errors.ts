/** What a response without a reply means: the service refused the command, or its outcome is unknown. */
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';
import { messageOf, notExecuted } from '../clients/errors.js';

/** An `application/problem+json` of the service. */
export interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly key?: string | undefined;
}

/** The request as a whole was refused before anything was executed. Parts of it may pass. */
export class RefusedRequestError extends UnsupportedError {}

/** Error pages of proxies may be long. */
const QUOTED_MAX = 200;

/** Nothing was executed, and asking again does not help. */
const REFUSED_STATUSES = new Set([400, 401, 403, 404, 405, 406, 413, 414, 415, 431, 501]);
const REFUSED_CODES = new Set([
  'invalid-argument',
  'unauthorized',
  'forbidden',
  'not-found',
  'method-not-allowed',
  'too-large',
  'unsupported-media-type',
  'unsupported',
]);

/** The error of one command of a batch, or of a whole request. */
export function errorOf({ code, detail }: Problem, key?: string): Error {
  if (REFUSED_CODES.has(code)) return new UnsupportedError(detail, { key });
  return new Error(`The service did not answer the command: ${detail} (${code})`);
}

export function problemIn(body: unknown): Problem | null {
  if (!isObject(body) || typeof body.code !== 'string') return null;
  const detail = typeof body.detail === 'string' ? body.detail : 'no reason given';
  return { code: body.code, detail, key: typeof body.key === 'string' ? body.key : undefined };
}

export interface FailedResponse {
  readonly url: string;
  readonly status: number;
  readonly location: string | null;
  readonly text: string;
  readonly problem: Problem | null;
}

/** For every status that is not a success. */
export function errorOfStatus({ url, status, location, text, problem }: FailedResponse): Error {
  const detail = problem ? problem.detail : quoted(text);
  const because = detail === '' ? '' : ` (${detail})`;
  if (status === 0 || (status >= 300 && status < 400)) {
    const where = location === null ? '' : ` to ${quoted(location)}`;
    return new UnsupportedError(`${url} redirects${where}. Give httpStore the final address of the service.`);
  }
  if (!REFUSED_STATUSES.has(status))
    return new Error(`The service at ${url} answered with status ${status}${because}.`);
  if (status === 401) {
    return new UnsupportedError(
      `The service at ${url} rejected the credentials${because}. Give httpStore a valid apiKey or jwt; with a URL, set HOLDFAST_API_KEY.`,
    );
  }
  if (status === 403) {
    return new UnsupportedError(
      `The service at ${url} does not allow this${because}. ` +
        'Choose a namespace on which this API key or JWT has the right, or use another API key or JWT.',
    );
  }
  if (problem?.code === 'unsupported') return new UnsupportedError(problem.detail, { key: problem.key });
  if (status === 404 || status === 405 || status === 406 || status === 501) {
    return new UnsupportedError(
      `There is no Holdfast service at ${url}, or it has another version: status ${status}${because}. Check the url.`,
    );
  }
  return new RefusedRequestError(`The service at ${url} refuses the request: status ${status}${because}.`);
}

/** A success that did not come from the service. */
export function notJson(url: string, type: string | null, text: string, cause?: unknown): Error {
  const body = text === '' ? 'an empty body' : `"${quoted(text)}"`;
  const typeText = type === null ? 'no content type' : quoted(type);
  return new Error(`The response of ${url} (${typeText}) is not JSON: ${body}. Is a proxy in between?`, {
    cause,
  });
}

/** `hasAnother`: there is another service that can be asked at once. */
export function notReached(url: string, cause: unknown, hasAnother: boolean): Error {
  const text = `The service at ${url} was not reached: ${messageOf(cause)}.`;
  const certain = notExecuted(cause);
  if (!certain) return new Error(text, { cause });
  return new NotExecutedError(
    `${text} Is it running, and is the address right?`,
    hasAnother ? 'at-once' : certain.retry,
    cause,
  );
}

function quoted(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > QUOTED_MAX ? `${line.slice(0, QUOTED_MAX)}…` : line;
}
