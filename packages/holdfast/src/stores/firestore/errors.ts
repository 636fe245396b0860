/** Refusals of Firestore, explained. */
import { UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { refusalOf, unlessUnsent } from './grpc-calls.js';

const NATIVE = 'Locks need a database in Native mode.';
const ADVICE = {
  invalid:
    'A document has at most 1 MiB: fewer holders or waiters per key, or shorter owners and metadata, help.',
  missing: 'Create a database in Native mode, or name the right project and database.',
  // Nothing was asked of a document that could have changed. So answers a database in Datastore mode.
  changed: NATIVE,
  forbidden: `Locks need the role roles/datastore.user. ${NATIVE}`,
} as const;

/** An explained refusal of a call without a precondition, or the error as it is, whose outcome is unknown. */
export function explainedError(error: unknown, key?: string): unknown {
  const refusal = refusalOf(error);
  if (refusal === null) return unlessUnsent(error);
  return new UnsupportedError(`${textOf(error, refusal)} Nothing was changed.`, { key, cause: error });
}

/** The same for a write. Where the client retried it, the right to write may have ended after the first attempt. */
export function explainedWriteError(error: unknown, key: string): unknown {
  const refusal = refusalOf(error);
  return refusal === 'forbidden'
    ? new Error(textOf(error, refusal), { cause: error })
    : explainedError(error, key);
}

function textOf(error: unknown, refusal: keyof typeof ADVICE): string {
  return `Firestore refused the call: ${messageOf(error).trim()} ${ADVICE[refusal]}`;
}

export function rethrow(error: unknown): never {
  throw explainedError(error);
}
