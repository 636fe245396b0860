/** What every command is. */
import type { CommandShape, Invocation } from './options.js';
import type { Terminal } from './output.js';

export interface Command extends CommandShape {
  readonly summary: string;
  /** What it does, for the top of its help. */
  readonly about: string;
  readonly examples: readonly (readonly [command: string, what: string])[];
  /** The status to exit with. Throws a `Failure` or an error of the library. */
  run(invocation: Invocation, terminal: Terminal): Promise<number>;
}
