/** The `holdfast` command: finds the command, runs it, tells failures in one line, exits. */
import { readFileSync } from 'node:fs';
import { within } from './clock.js';
import type { Command } from './command.js';
import { doctor } from './commands/doctor.js';
import { evict } from './commands/evict.js';
import { inspect } from './commands/inspect.js';
import { key } from './commands/key.js';
import { ls } from './commands/ls.js';
import { migrate } from './commands/migrate.js';
import { run } from './commands/run.js';
import { serve } from './commands/serve.js';
import { watch } from './commands/watch.js';
import { mistypedVariables, outdoneStore } from './environment.js';
import { EXIT, Failure, usageFailure } from './exit.js';
import { failureOf } from './failure.js';
import { commandHelp, generalHelp } from './help.js';
import { parseInvocation } from './options.js';
import type { Outlet } from './outlet.js';
import { openTerminal, printable, type Terminal } from './output.js';
import { stderr, stdout } from './standard-streams.js';

const COMMANDS: readonly Command[] = [run, ls, inspect, evict, watch, doctor, migrate, serve, key];
/** Options of `serve` that are no settings. */
const NO_VARIABLES: readonly string[] = ['config', 'print-config'];
/** A stderr that nobody reads must not keep the status from whoever waits for it. */
const LAST_WORDS_MS_MAX = 1_000;

async function dispatch(args: readonly string[], terminal: Terminal): Promise<number> {
  // People try `holdfast help run` too.
  const [first, ...rest] = args;
  const invocation = parseInvocation(first === 'help' ? [...rest, '--help'] : args, COMMANDS);
  const { command, options } = invocation;
  if (options.has('help')) {
    terminal.out(command ? commandHelp(terminal, command) : generalHelp(terminal, COMMANDS));
    return EXIT.ok;
  }
  if (command) {
    for (const text of notesFor(command, options.has('store'))) terminal.warn(text);
    return command.run(invocation, terminal);
  }
  if (options.has('version')) {
    terminal.out(version());
    return EXIT.ok;
  }
  throw usageFailure(`say what to do: ${COMMANDS.map(({ name }) => name).join(', ')}; see holdfast --help`);
}

/** The service says itself which store counts. */
function notesFor(command: Command, hasStore: boolean): string[] {
  const settings = ['store', ...serve.options.filter((name) => !NO_VARIABLES.includes(name))] as const;
  const mistyped = mistypedVariables(process.env, settings, command === serve);
  return command === serve || hasStore ? mistyped : [...mistyped, ...outdoneStore(process.env)];
}

function version(): string {
  const description: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const known = typeof description === 'object' && description !== null && 'version' in description;
  return known ? String(description.version) : 'unknown';
}

/** One line for what people are expected to meet. A stack trace is for bugs, and asks for a report. */
function tell(error: unknown, json: boolean, terminal: Terminal): number {
  const failure = failureOf(error);
  if (!failure) {
    terminal.err(
      `holdfast: this is a bug, please report it: ${error instanceof Error ? error.stack : String(error)}`,
    );
    return EXIT.other;
  }
  const { status, details, message } = failure;
  const line = printable(message);
  terminal.err(json ? JSON.stringify({ error: { status, message: line, ...details } }) : `holdfast: ${line}`);
  return status;
}

/**
 * For developers, and not for whoever runs a command: from 22.13 on Node has SQLite of its own, and warns each time that
 * it is experimental; the AWS SDK warns each time of the versions of Node that it will stop to support.
 */
const WARNINGS_FOR_DEVELOPERS = /^SQLite is an experimental feature|^NodeVersionSupportWarning/;

function quietForPeople(): void {
  const warn = process.emitWarning;
  process.emitWarning = (...args: unknown[]): void => {
    if (!WARNINGS_FOR_DEVELOPERS.test(String(args[0]))) Reflect.apply(warn, process, args);
  };
}

async function main(args: readonly string[], stdout: Outlet, stderr: Outlet): Promise<number> {
  quietForPeople();
  // Known before the arguments are: what is wrong with them is to be told in this form.
  const end = args.indexOf('--');
  const json = args.slice(0, end === -1 ? undefined : end).includes('--json');
  const terminal = openTerminal(stdout, stderr, process.env, json);
  let status: number;
  try {
    status = await dispatch(args, terminal);
  } catch (error) {
    status = tell(error, json, terminal);
  }
  // What was asked for is waited for, as by every program; `run` writes nothing there.
  if (stdout.used) await stdout.flushed();
  const { failure } = stdout;
  // A reader that has gone (`holdfast ls | head -1`) has seen enough.
  if (failure && failure.code !== 'EPIPE' && status === EXIT.ok) {
    status = tell(
      new Failure(EXIT.other, `the output cannot be written: ${failure.message}`),
      json,
      terminal,
    );
  }
  await within(LAST_WORDS_MS_MAX, stderr.flushed());
  return status;
}

// Without a listener, USR1 would open Node's debugger.
process.on('SIGUSR1', () => undefined);
// Not left to an empty event loop: a client's open connection would keep the shell waiting.
process.exit(await main(process.argv.slice(2), stdout, stderr));
