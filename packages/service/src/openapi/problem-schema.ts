/** Problems in the document: their schema, and the answers for a list of codes. */
import { PROBLEMS, type ProblemCode, RETRIED } from '../http/problem.js';
import { count, named, object, oneOf, type Schema, text } from './schema.js';

/** Only for the log and the metrics, because the client has gone. */
const NEVER_SENT: readonly ProblemCode[] = ['client-gone'];
const CODES = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => !NEVER_SENT.includes(code));

export const PROBLEM_MEMBERS = {
  type: text('`urn:holdfast:problem:` and the code.', { format: 'uri' }),
  title: text('The meaning of the code. The same text for every problem with this code.'),
  status: count('The HTTP status.'),
  detail: text('The error in this request, for people.'),
  code: oneOf(CODES, 'The kind of error, for programs.'),
  key: text('The key of the lock that the problem is about.'),
  requestId: text("Finds the request in the service's log."),
};

export const problemSchema = named('Problem', {
  ...object(PROBLEM_MEMBERS, ['key', 'requestId']),
  description: 'Why a request failed.',
});

/** Problems with members of their own. */
const OWN_SCHEMA: Partial<Record<ProblemCode, string>> = { busy: 'BusyProblem', lost: 'LostProblem' };

/** The problems of every route that needs a principal. `too-large`: for its headers. */
export const COMMON_PROBLEMS: readonly ProblemCode[] = [
  'invalid-argument',
  'unauthorized',
  'forbidden',
  'timeout',
  'too-large',
  'rate-limited',
  'internal',
  'unsupported',
  'unknown',
  'auth-unavailable',
  'closing',
];

/** Further problems of a route with a body. */
export const BODY_PROBLEMS: readonly ProblemCode[] = ['unsupported-media-type'];

/** One answer per status, described by its codes. */
export function problemResponses(codes: readonly ProblemCode[]): Readonly<Record<string, Schema>> {
  const statuses = new Set(codes.map((code) => PROBLEMS[code].status));
  const answers = [...statuses].map((status) => {
    return [
      status,
      responseOf(
        status,
        codes.filter((code) => PROBLEMS[code].status === status),
      ),
    ] as const;
  });
  return Object.fromEntries(answers);
}

function responseOf(status: number, codes: readonly ProblemCode[]): Schema {
  const [own = 'Problem'] = codes.flatMap((code) => OWN_SCHEMA[code] ?? []);
  const description = codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' ');
  const content = { 'application/problem+json': { schema: { $ref: `${own}#` } } };
  return RETRIED.includes(status)
    ? { description, headers: { 'retry-after': retryAfter }, content }
    : { description, content };
}

export const retryAfter = {
  description: 'How many seconds to wait before the next try, where that is known.',
  schema: { type: 'integer', format: 'int32' },
};
