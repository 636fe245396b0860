/** From arguments to an invocation: which command, which options. Refuses what it does not know, naming what was probably meant. */
import { parseArgs } from 'node:util';
import { parseDuration } from './duration.js';
import { usageFailure } from './exit.js';
import { nearest } from './nearest.js';
import { redact } from './redaction.js';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** What stands for the value in the help text. */
  readonly value?: string;
  readonly text: string;
}

export const OPTIONS = {
  store: { type: 'string', value: 'URL', text: 'where the locks are kept (see `holdfast --help`)' },
  namespace: {
    type: 'string',
    value: 'NAME',
    text: 'keeps the keys of different users of one store apart (default)',
  },
  ttl: { type: 'string', value: 'TIME', text: 'how long the lock lives without renewal (30s)' },
  wait: {
    type: 'string',
    value: 'TIME',
    text: 'how long to wait for the lock (10s); 0 takes it now or not at all',
  },
  owner: { type: 'string', value: 'TEXT', text: 'who holds it, for people to read (HOST:PID)' },
  permits: { type: 'string', value: 'K', text: 'take K of the permits that --capacity names (1)' },
  capacity: { type: 'string', value: 'N', text: 'make it a semaphore: N permits to be had at once' },
  grace: {
    type: 'string',
    value: 'TIME',
    text: 'time between TERM and KILL when the lease cannot be renewed (ttl/4, at most 5s)',
  },
  'min-hold': {
    type: 'string',
    value: 'TIME',
    text: 'however soon COMMAND ends, nobody gets the lock earlier than this',
  },
  limit: { type: 'string', value: 'N', text: 'at most N keys' },
  after: { type: 'string', value: 'KEY', text: 'only keys that sort behind KEY' },
  every: { type: 'string', value: 'TIME', text: 'how often to look (500ms)' },
  print: { type: 'boolean', text: 'print what would be made, and connect to nothing' },
  supabase: { type: 'boolean', text: 'also grant what the Supabase store needs' },
  'time-to-live': {
    type: 'boolean',
    text: 'turn time to live on at a DynamoDB table that is there already, too',
  },
  config: { type: 'string', value: 'FILE', text: 'settings as JSON, by the names of the flags' },
  host: { type: 'string', value: 'ADDRESS', text: 'the address to listen on (127.0.0.1)' },
  port: { type: 'string', value: 'N', text: 'the port to listen on (8080); 0 takes a free one' },
  keys: { type: 'string', value: 'FILE', text: 'the file of API keys' },
  'jwt-issuer': { type: 'string', value: 'URL', text: 'whose tokens count' },
  'jwt-audience': { type: 'string', value: 'TEXT', text: 'whom tokens have to be made for' },
  'jwt-jwks': { type: 'string', value: 'URL', text: 'where the keys of the issuer are: a URL or a file' },
  'jwt-rights': {
    type: 'string',
    value: 'LIST',
    text: 'what tokens may do that do not say it themselves (none)',
  },
  insecure: { type: 'boolean', text: 'serve everybody, also beyond loopback' },
  'allowed-hosts': {
    type: 'string',
    value: 'LIST',
    text: 'host names besides localhost to answer to without auth, with commas between; * is any',
  },
  'tls-cert': { type: 'string', value: 'FILE', text: 'the certificate, for https' },
  'tls-key': { type: 'string', value: 'FILE', text: 'its private key' },
  'trust-proxy': {
    type: 'string',
    value: 'LIST',
    text: 'the proxies whose x-forwarded-for counts: addresses or networks, with commas between',
  },
  audit: { type: 'string', value: 'FILE', text: 'where evictions and key changes are noted' },
  drain: {
    type: 'string',
    value: 'TIME',
    text: 'how long /readyz is 503 before closing, for load balancers (0)',
  },
  'log-level': { type: 'string', value: 'LEVEL', text: 'trace, debug, info, warn, error or silent (info)' },
  'print-config': { type: 'boolean', text: 'print what is in force, and start nothing' },
  rights: {
    type: 'string',
    value: 'LIST',
    text: 'what the key may do: ROLE:NAMESPACE, with commas between; roles are read, lock, admin',
  },
  expires: { type: 'string', value: 'TIME', text: 'the key ends by itself after this (never)' },
  yes: { type: 'boolean', short: 'y', text: 'do not ask' },
  json: { type: 'boolean', text: 'for machines' },
  help: { type: 'boolean', short: 'h', text: 'show this help' },
  version: { type: 'boolean', short: 'V', text: 'show the version' },
} as const satisfies { readonly [name: string]: OptionSpec };

export type OptionName = keyof typeof OPTIONS;

/** What `parseInvocation` has to know of a command. */
export interface CommandShape {
  readonly name: string;
  readonly options: readonly OptionName[];
  /** How many arguments it takes, and their names for the message about a wrong number. */
  readonly operands: { readonly min: number; readonly max: number; readonly text: string };
  /** Whether what follows `--` is a command line of its own. */
  readonly takesCommandLine: boolean;
}

export interface Invocation<C extends CommandShape = CommandShape> {
  /** Null for bare `holdfast`, `--help` and `--version`. */
  readonly command: C | null;
  readonly operands: readonly string[];
  readonly commandLine: readonly string[];
  readonly options: Options;
}

/** Given options, by name; read with a check of their form. */
export class Options {
  readonly #given: ReadonlyMap<OptionName, string>;

  constructor(given: ReadonlyMap<OptionName, string>) {
    this.#given = given;
  }

  has(name: OptionName): boolean {
    return this.#given.has(name);
  }

  text(name: OptionName): string | undefined {
    return this.#given.get(name);
  }

  durationMs(name: OptionName): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : parseDuration(name, text);
  }

  count(name: OptionName, max: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^0*[1-9]\d*$/.test(text)) throw usageFailure(`--${name}: "${text}" is not a whole number above 0`);
    if (Number(text) > max) throw usageFailure(`--${name}: ${text} is too large; at most ${max}`);
    return Number(text);
  }
}

/** Options that belong to no command in particular. */
const EVERYWHERE: readonly OptionName[] = ['store', 'namespace', 'json', 'help'];
const ALONE: readonly OptionName[] = ['store', 'namespace', 'json', 'help', 'version'];

export function parseInvocation<C extends CommandShape>(
  args: readonly string[],
  commands: readonly C[],
): Invocation<C> {
  const end = args.indexOf('--');
  const before = args.slice(0, end === -1 ? undefined : end);
  // Only cut into words and options: what is wrong with them is told below.
  const { tokens } = parseArgs({
    args: before,
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
  const command = findCommand(words[0], commands);
  const given = new Map<OptionName, string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const name = checkOption(token.rawName, token.name, command, commands);
    given.set(name, checkValue(name, token.value, token.inlineValue));
  }
  const options = new Options(given);
  const after = end === -1 ? [] : args.slice(end + 1);
  if (!command) return { command: null, operands: [], commandLine: [], options };
  const operands = command.takesCommandLine ? words.slice(1) : [...words.slice(1), ...after];
  const commandLine = command.takesCommandLine ? after : [];
  if (!options.has('help')) checkOperands(command, operands, commandLine);
  return { command, operands, commandLine, options };
}

function findCommand<C extends CommandShape>(word: string | undefined, commands: readonly C[]): C | null {
  if (word === undefined) return null;
  const found = commands.find(({ name }) => name === word);
  if (found) return found;
  const names = commands.map(({ name }) => name);
  const meant = nearest(word, names);
  const hint = meant === null ? `there are ${names.join(', ')}` : `did you mean ${meant}?`;
  throw usageFailure(`unknown command "${word}"; ${hint}`);
}

function checkOption(
  raw: string,
  name: string,
  command: CommandShape | null,
  commands: readonly CommandShape[],
): OptionName {
  const allowed = command ? [...EVERYWHERE, ...command.options] : ALONE;
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
): void {
  const { min, max, text } = command.operands;
  const usage = `usage: holdfast ${command.name} ${text}`.trimEnd();
  if (operands.length < min) throw usageFailure(`${command.name} needs a KEY; ${usage}`);
  if (operands.length > max) {
    const extra = operands[max] ?? '';
    throw usageFailure(`unexpected "${redact(extra)}"; ${hintAt(extra, command, commandLine) ?? usage}`);
  }
  if (command.takesCommandLine && commandLine.length === 0) {
    throw usageFailure(`${command.name} needs a command after --; ${usage}`);
  }
  if (commandLine[0] === '') throw usageFailure(`the command after -- is empty; ${usage}`);
}

/** What was probably meant by an operand too many. */
function hintAt(extra: string, command: CommandShape, commandLine: readonly string[]): string | null {
  if (command.takesCommandLine && commandLine.length === 0) return 'put -- before the command';
  return extra.includes('://') ? 'put --store before the URL' : null;
}
