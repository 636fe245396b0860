/** The values of a URL's options that are no text. Values are not quoted: a password may have slipped in among them. */
import { InvalidArgumentError } from '../protocol/index.js';

export function checkedFlag(name: string, text: string): boolean {
  if (text === 'true') return true;
  if (text === 'false') return false;
  throw new InvalidArgumentError(`The option "${name}" is true or false.`);
}

export function checkedCount(name: string, text: string, max: number): number {
  const count = Number(text);
  if (/^\d{1,9}$/.test(text) && count >= 1 && count <= max) return count;
  throw new InvalidArgumentError(`The option "${name}" is a whole number from 1 to ${max}.`);
}
