/** The check of a token before a guard writes anything. */
import { InvalidArgumentError } from '../protocol/errors.js';

export function checkToken(token: number): void {
  if (Number.isSafeInteger(token) && token > 0) return;
  throw new InvalidArgumentError(`A fencing token is a positive safe integer, not ${String(token)}.`);
}
