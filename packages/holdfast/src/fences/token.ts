/** What every guard asks of a token before it writes anything. */
import { InvalidArgumentError } from '../protocol/errors.js';

export function checkToken(token: number): void {
  if (Number.isSafeInteger(token) && token > 0) return;
  throw new InvalidArgumentError(`A fencing token is a positive safe integer, not ${String(token)}.`);
}
