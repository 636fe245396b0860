/** A misspelt option is a mistake that nobody would notice otherwise. */
import { InvalidArgumentError } from './errors.js';

export function checkOptionNames(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(`The options have to be an object. They are: ${known.join(', ')}.`);
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new InvalidArgumentError(
      `There is no option "${name}" here. The options are: ${known.join(', ')}.`,
    );
  }
}
