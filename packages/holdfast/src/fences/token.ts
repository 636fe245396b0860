/** The check of a token before a guard writes anything, and the error of a guard that wrote nothing. */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';

export function checkToken(token: number): void {
  if (Number.isSafeInteger(token) && token > 0) return;
  throw new InvalidArgumentError(`A fencing token is a positive safe integer, not ${String(token)}.`);
}

export function staleError(token: number, cause: unknown): LeaseLostError {
  const message = `Nothing was written with token ${token}: a later holder has written. Stop.`;
  return new LeaseLostError(message, { cause, reason: 'replaced' });
}
