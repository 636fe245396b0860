/** The part of the table of commands and options that completion needs. */
import type { Command } from '../command.js';
import { ALONE, optionsOf } from '../options/invocation.js';
import { OPTIONS, type OptionName, type OptionSpec } from '../options/options.js';

export interface Flag extends OptionSpec {
  readonly name: OptionName;
  readonly choices: readonly string[];
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** The possible values of its first operand, if they are few. */
  readonly choices: readonly string[];
  /** The name of its first operand; null when it has none. */
  readonly operand: string | null;
}

export interface Completed {
  /** Options without a command. */
  readonly alone: readonly Flag[];
  readonly all: readonly CompletedCommand[];
}

export function completed(commands: readonly Command[]): Completed {
  return {
    alone: ALONE.map(flagOf),
    all: commands.map((command) => {
      const { name, summary, operands } = command;
      const operand = operands.max === 0 ? null : (/[A-Z]+/.exec(operands.text)?.[0] ?? null);
      const flags = optionsOf(command).map(flagOf);
      return { name, summary, flags, choices: operands.choices ?? [], operand };
    }),
  };
}

function flagOf(name: OptionName): Flag {
  const spec: OptionSpec = OPTIONS[name];
  return { ...spec, name, choices: spec.choices ?? [] };
}
