/** Parses arguments to an invocation: the command, its operands, its options. Refuses unknown ones, and suggests a known one. */
import { parseArgs } from 'node:util';
import { usageFailure } from '../failure.js';
import { redact } from '../printing/redaction.js';
import { nearest } from './nearest.js';
import { OPTIONS, type OptionName, Options } from './options.js';

/** The part of a command that `parseInvocation` needs. */
export interface CommandShape {
  readonly name: string;
  readonly options: readonly OptionName[];
  /** The number of arguments, and their names for the message about a wrong number. */
  readonly operands: {
    readonly min: number;
    readonly max: number;
    readonly text: string;
    /** The possible values of the first argument, if they are few. */
    readonly choices?: readonly string[];
  };
  /** Options of every other command that have no meaning here. */
  readonly without?: readonly OptionName[];
  /** Whether the arguments after `--` are a command line of their own. Default false. */
  readonly takesCommandLine?: boolean;
}

export interface Invocation<C extends CommandShape = CommandShape> {
  /** Null for bare `holdfast`, `--help` and `--version`. */
  readonly command: C | null;
  readonly operands: readonly string[];
  readonly commandLine: readonly string[];
  readonly options: Options;
}

/** Options of every command, and options without a command. */
export const EVERYWHERE: readonly OptionName[] = ['store', 'namespace', 'json', 'help'];
export const ALONE: readonly OptionName[] = [...EVERYWHERE, 'version'];

/** The options of a command, its own first. */
export function optionsOf({ options, without = [] }: CommandShape): readonly OptionName[] {
  return [...options, ...EVERYWHERE.filter((name) => !without.includes(name))];
}

export function parseInvocation<C extends CommandShape>(
  args: readonly string[],
  commands: readonly C[],
): Invocation<C> {
  const end = args.indexOf('--');
  const before = args.slice(0, end === -1 ? undefined : end);
  // Only splits the arguments; the checks below explain errors.
  const { tokens } = parseArgs({
    args: before,
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
  const command = findCommand(words[0], commands);
  const given = new Map<OptionName, readonly string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const name = checkOption(token.rawName, token.name, command, commands);
    const value = checkValue(name, token.value, token.inlineValue);
    given.set(name, [...(given.get(name) ?? []), value]);
  }
  const options = new Options(given);
  const after = end === -1 ? [] : args.slice(end + 1);
  if (!command) return { command: null, operands: [], commandLine: [], options };
  const operands = command.takesCommandLine ? words.slice(1) : [...words.slice(1), ...after];
  const commandLine = command.takesCommandLine ? after : [];
  if (!options.has('help')) checkOperands(command, operands, commandLine, options.has('key'));
  return { command, operands, commandLine, options };
}

function findCommand<C extends CommandShape>(word: string | undefined, commands: readonly C[]): C | null {
  if (word === undefined) return null;
  const found = commands.find(({ name }) => name === word);
  if (found) return found;
  const names = commands.map(({ name }) => name);
  const meant = nearest(word, names);
  const hint = meant === null ? `commands are ${names.join(', ')}` : `did you mean ${meant}?`;
  throw usageFailure(`unknown command "${word}"; ${hint}`);
}

function checkOption(
  raw: string,
  name: string,
  command: CommandShape | null,
  commands: readonly CommandShape[],
): OptionName {
  const allowed = command ? optionsOf(command) : ALONE;
  const known = allowed.find((option) => option === name);
  if (known) return known;
  const elsewhere = commands.filter(({ options }) => options.some((option) => option === name));
  if (command && elsewhere.length > 0) {
    const names = elsewhere.map((other) => other.name).join(', ');
    throw usageFailure(`${raw} is an option of ${names}, not of ${command.name}`);
  }
  const all: readonly OptionName[] = command
    ? allowed
    : [...ALONE, ...commands.flatMap(({ options }) => options)];
  const meant = nearest(name, all);
  const hint =
    meant === null ? `see holdfast ${command ? `${command.name} ` : ''}--help` : `did you mean --${meant}?`;
  throw usageFailure(`unknown option ${raw}; ${hint}`);
}

/** The value; '' for a flag. `--ttl --wait 5s` is a forgotten value, not a ttl of "--wait". */
function checkValue(name: OptionName, value: string | undefined, inline: boolean | undefined): string {
  if (OPTIONS[name].type === 'boolean') {
    if (value !== undefined) throw usageFailure(`--${name} takes no value`);
    return '';
  }
  if (value === undefined || value === '' || (!inline && value.startsWith('-'))) {
    throw usageFailure(`--${name} needs a value`);
  }
  return value;
}

function checkOperands(
  command: CommandShape,
  operands: readonly string[],
  commandLine: readonly string[],
  hasKey: boolean,
): void {
  const { min, max, text } = command.operands;
  const usage = `usage: holdfast ${command.name} ${text}`.trimEnd();
  // --key names a key as well.
  if (operands.length < min && !hasKey) {
    const [what = ''] = text.split(' ');
    const needed = /^[A-Z]+$/.test(what) ? `a ${what}` : 'an action';
    throw usageFailure(`${command.name} needs ${needed}; ${usage}`);
  }
  if (operands.length > max) {
    const extra = operands[max] ?? '';
    throw usageFailure(`unexpected "${redact(extra)}"; ${hintAt(extra, command, commandLine) ?? usage}`);
  }
  if (command.takesCommandLine && commandLine.length === 0) {
    throw usageFailure(`${command.name} needs a command after --; ${usage}`);
  }
  if (commandLine[0] === '') throw usageFailure(`the command after -- is empty; ${usage}`);
}

/** A hint for an extra operand: the probable intention. */
function hintAt(extra: string, command: CommandShape, commandLine: readonly string[]): string | null {
  if (command.takesCommandLine && commandLine.length === 0) return 'put -- before the command';
  return extra.includes('://') ? 'put --store before the URL' : null;
}
