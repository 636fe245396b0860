/** Turns an error of a handler or the framework into a `Problem`. An unexpected error shows no internals. */
import { HoldfastError } from 'holdfast';
import { Problem, type ProblemCode } from './problem.js';

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

/** Own texts: those of the parser may repeat the request, which may contain a secret. */
function explain400(error: Error): string {
  const { code } = error as { readonly code?: unknown };
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return 'The body is empty: send a JSON object.';
  if (code === 'FST_ERR_BAD_URL') return 'The path is not validly percent-encoded.';
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') return 'The body is not as long as Content-Length says.';
  return 'The body is not JSON that this service takes.';
}

function explain({ instancePath, message, keyword, params }: ValidationFinding, where = 'body'): string {
  const place = instancePath === '' ? `The ${where}` : `${where}${instancePath.replaceAll('/', '.')}`;
  if (keyword === 'additionalProperties') {
    return `${place} has a member that is not known here: ${JSON.stringify(params.additionalProperty)}.`;
  }
  return `${place} ${message ?? 'is not valid'}.`;
}
