/** Refusals of Firestore, explained. */
import { UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { refusalOf, unlessUnsent } from '../clients/grpc-calls.js';

const ADVICE = {
  invalid:
    'A document has at most 1 MiB: fewer holders or waiters per key, or shorter owners and metadata, help.',
  missing: 'Create a database in Native mode, or name the right project and database.',
  forbidden: 'Locks need the role roles/datastore.user, and a database in Native mode.',
} as const;

/** An explained refusal, or the error as it is, whose outcome is unknown. */
export function explainedError(error: unknown, key?: string): unknown {
  const refusal = refusalOf(error);
  if (refusal === null || refusal === 'changed') return unlessUnsent(error);
  const message = `Firestore refused the call: ${messageOf(error).trim()} ${ADVICE[refusal]} Nothing was changed.`;
  return new UnsupportedError(message, { key, cause: error });
}

export function rethrow(error: unknown): never {
  throw explainedError(error);
}
