/** Refuses unknown options: without this check, nobody would notice a misspelt one. */
import { InvalidArgumentError } from './errors.js';

/** Returns the options, or throws `InvalidArgumentError`. */
export function checkOptionNames<O extends object>(options: O, known: readonly string[]): O {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(`The options have to be an object. They are: ${known.join(', ')}.`);
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new InvalidArgumentError(
      `There is no option "${name}" here. The options are: ${known.join(', ')}.`,
    );
  }
  return options;
}
