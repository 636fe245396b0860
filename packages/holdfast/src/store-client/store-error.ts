/** Errors of operations that the store did not execute, or whose outcome is unknown. */
import { type HoldfastError, NotExecutedError, StoreError, UnsupportedError } from '../protocol/errors.js';
import { isError } from '../protocol/is-error.js';

/** How much of a driver's message is repeated. */
const WORDS_MAX = 300;

export function storeError(operation: string, key?: string, cause?: unknown): StoreError {
  const what = key === undefined ? operation : `${operation} of "${key}"`;
  if (cause instanceof NotExecutedError) return notExecutedError(`The ${what} failed`, operation, key, cause);
  const message =
    `The store did not answer the ${what}${because(cause)}, so what happened there is unknown. ` +
    'Check the store and try again.';
  return new StoreError(message, { key, cause, operation });
}

/** The same while a lock is being acquired. */
export function acquireError(name: string, cause: unknown): HoldfastError {
  const operation = 'acquire';
  if (cause instanceof UnsupportedError) return unsupportedError(name, cause);
  if (cause instanceof NotExecutedError)
    return notExecutedError(`"${name}" was not acquired`, operation, name, cause);
  const message =
    `The store did not answer while "${name}" was being acquired${because(cause)}, so whether it was granted is ` +
    'unknown. Anything granted late is given back. Check the store and try again.';
  return new StoreError(message, { key: name, cause, operation });
}

/** The same error with the key as its user knows it, without a namespace. */
export function unsupportedError(key: string | undefined, error: UnsupportedError): UnsupportedError {
  if (key === undefined || error.key === undefined || error.key === key) return error;
  return new UnsupportedError(error.message, { key, cause: error.cause ?? error });
}

function notExecutedError(
  what: string,
  operation: string,
  key: string | undefined,
  cause: NotExecutedError,
): StoreError {
  const why = shortened(cause.message);
  const message = `${what}: ${why}${/[?!]$/.test(why) ? '' : '.'} The store executed nothing.`;
  return new StoreError(message, { key, cause, operation, outcome: 'not-executed' });
}

export function because(cause: unknown): string {
  return isError(cause) && cause.message !== '' ? ` (${shortened(cause.message)})` : '';
}

function shortened(text: string): string {
  const words = text.trim().replace(/\.$/, '');
  return words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)}…` : words;
}
