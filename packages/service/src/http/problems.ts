/** Makes a `Problem` of whatever a handler or the framework threw. What nobody foresaw shows nothing of its inside. */
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
  if (error instanceof Error) return fromFramework(error) ?? unforeseen(error);
  return unforeseen(error);
}

function unforeseen(cause: unknown): Problem {
  return new Problem('internal', 'This was not foreseen. The log has more, under the id of this request.', {
    cause,
  });
}

function fromFramework(error: FrameworkError): Problem | null {
  const finding = error.validation?.[0];
  if (finding)
    return new Problem('invalid-argument', inWords(finding, error.validationContext), { cause: error });
  switch (error.statusCode) {
    case 400:
      return new Problem('invalid-argument', wordsOf400(error), { cause: error });
    case 408:
      return new Problem('timeout', 'The request did not arrive in time. Send it again.', { cause: error });
    case 413:
      return new Problem('too-large', 'The body is larger than this service takes.', { cause: error });
    case 415:
      return new Problem('unsupported-media-type', 'Send the body as application/json.', { cause: error });
    default:
      return null;
  }
}

/** The parser's own words may repeat what was sent, and that may be a secret. */
function wordsOf400(error: Error): string {
  const { code } = error as { readonly code?: unknown };
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return 'The body is empty: send a JSON object.';
  if (code === 'FST_ERR_BAD_URL') return 'The path is not validly percent-encoded.';
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') return 'The body is not as long as Content-Length says.';
  return 'The body is not JSON that this service takes.';
}

function inWords({ instancePath, message, keyword, params }: ValidationFinding, where = 'body'): string {
  const place = instancePath === '' ? `The ${where}` : `${where}${instancePath.replaceAll('/', '.')}`;
  if (keyword === 'additionalProperties') {
    return `${place} has a member that is not known here: ${JSON.stringify(params.additionalProperty)}.`;
  }
  return `${place} ${message ?? 'is not valid'}.`;
}
