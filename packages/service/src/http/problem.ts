/**
 * Errors for clients: `application/problem+json`, a code for programs, a text for people. Unexpected errors show no
 * internals.
 */
import { HoldfastError } from 'holdfast';

/** Stable codes. Contention is always `busy`, and an outage is always `unknown`. */
export type ProblemCode =
  | 'invalid-argument'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'timeout'
  | 'lost'
  | 'ended'
  | 'superseded'
  | 'reused'
  | 'too-large'
  | 'unsupported-media-type'
  | 'busy'
  | 'rate-limited'
  | 'client-gone'
  | 'internal'
  | 'unsupported'
  | 'unknown'
  | 'auth-unavailable'
  | 'audit-unavailable'
  | 'closing';

interface Kind {
  readonly status: number;
  readonly title: string;
}

export const PROBLEMS: Readonly<Record<ProblemCode, Kind>> = {
  'invalid-argument': { status: 400, title: 'The request is not valid' },
  unauthorized: { status: 401, title: 'The API key or JWT is missing or not accepted' },
  forbidden: { status: 403, title: 'The principal has no right to do this' },
  'not-found': { status: 404, title: 'There is nothing at this path' },
  'method-not-allowed': { status: 405, title: 'The method is not allowed on this path' },
  timeout: { status: 408, title: 'The request took too long to arrive' },
  lost: { status: 409, title: 'The lock is no longer held' },
  ended: { status: 409, title: 'The hold has ended' },
  superseded: { status: 409, title: 'A later request with the same hold replaced this one' },
  'too-large': { status: 413, title: 'The request is too large' },
  'unsupported-media-type': { status: 415, title: 'The body is not sent as JSON' },
  reused: { status: 422, title: 'The hold or Idempotency-Key belongs to another request' },
  busy: { status: 423, title: 'The lock is held by another client' },
  'rate-limited': { status: 429, title: 'A limit of the service or of the principal is reached' },
  // No client reads it, but the log and the metrics need it to distinguish it from failures of the service.
  'client-gone': { status: 499, title: 'The client went away' },
  internal: { status: 500, title: 'The service failed unexpectedly' },
  unsupported: { status: 501, title: 'The store does not support this' },
  unknown: { status: 503, title: 'The store did not answer, so the outcome is unknown' },
  'auth-unavailable': { status: 503, title: 'Authentication is temporarily unavailable' },
  'audit-unavailable': { status: 503, title: 'The audit log cannot be written' },
  closing: { status: 503, title: 'The service is closing' },
};

export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly key?: string;
  readonly [member: string]: unknown;
}

export interface ProblemDetails {
  readonly key?: string | undefined;
  readonly cause?: unknown;
  /** Further members of the body. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Statuses that are temporary: clients and proxies that know `retry-after` try again. */
export const RETRIED: readonly number[] = [429, 503];

/** Thrown by handlers. The message is for the client: no secrets, no internals. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly key: string | undefined;
  readonly members: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, details: ProblemDetails = {}) {
    super(detail, 'cause' in details ? { cause: details.cause } : undefined);
    this.name = 'Problem';
    this.code = code;
    this.key = details.key;
    this.members = details.members ?? {};
    const retry = RETRIED.includes(this.status) ? { 'retry-after': '1' } : {};
    this.headers = { ...retry, ...details.headers };
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  get body(): ProblemBody {
    const { code, key, message, members } = this;
    const { status, title } = PROBLEMS[code];
    const named = key === undefined ? {} : { key };
    return {
      type: `urn:holdfast:problem:${code}`,
      title,
      status,
      detail: message,
      code,
      ...named,
      ...members,
    };
  }
}

const BY_LIBRARY_CODE: Readonly<Record<HoldfastError['code'], ProblemCode>> = {
  'acquire-timeout': 'busy',
  'lease-lost': 'lost',
  store: 'unknown',
  'invalid-argument': 'invalid-argument',
  unsupported: 'unsupported',
};

interface FrameworkError extends Error {
  readonly statusCode?: number;
  readonly validation?: readonly ValidationFinding[];
  readonly validationContext?: string;
}

interface ValidationFinding {
  readonly instancePath: string;
  readonly message?: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof HoldfastError) {
    return new Problem(BY_LIBRARY_CODE[error.code], error.message, { key: error.key, cause: error });
  }
  if (error instanceof Error) return fromFramework(error) ?? unexpected(error);
  return unexpected(error);
}

function unexpected(cause: unknown): Problem {
  return new Problem('internal', 'An unexpected error. The log has details under the id of this request.', {
    cause,
  });
}

function fromFramework(error: FrameworkError): Problem | null {
  const finding = error.validation?.[0];
  if (finding)
    return new Problem('invalid-argument', explain(finding, error.validationContext), { cause: error });
  switch (error.statusCode) {
    case 400:
      return new Problem('invalid-argument', explain400(error), { cause: error });
    case 408:
      return new Problem('timeout', 'The request did not arrive in time. Send it again.', { cause: error });
    case 413:
      return new Problem('too-large', 'The body is larger than this service allows.', { cause: error });
    case 415:
      return new Problem('unsupported-media-type', 'Send the body as application/json.', { cause: error });
    default:
      return null;
  }
}

/** Has its own messages: those of the parser may repeat the request, which may contain a secret. */
function explain400(error: Error): string {
  const { code } = error as { readonly code?: unknown };
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return 'The body is empty: send a JSON object.';
  if (code === 'FST_ERR_BAD_URL') return 'The path is not validly percent-encoded.';
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') return 'The body is not as long as Content-Length says.';
  return 'The body is not valid JSON, or has a member named __proto__ or constructor.';
}

function explain({ instancePath, message, keyword, params }: ValidationFinding, where = 'body'): string {
  const place = instancePath === '' ? `The ${where}` : `${where}${instancePath.replaceAll('/', '.')}`;
  if (keyword === 'additionalProperties') {
    return `${place} has a member that is not known here: ${JSON.stringify(params.additionalProperty)}.`;
  }
  if (keyword === 'type') return `${place} must be of type ${String(params.type)}.`;
  if (keyword === 'required')
    return `${place} must have the member ${JSON.stringify(params.missingProperty)}.`;
  return `${place} ${message ?? 'is not valid'}.`;
}
