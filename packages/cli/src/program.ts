/** The `holdfast` command: finds the subcommand, runs it, and reports a failure in one line. */
import { within } from './clock.js';
import { type Command, commandHelp, generalHelp } from './command.js';
import { acquire } from './commands/acquire.js';
import { apiKey } from './commands/api-key.js';
import { completion } from './commands/completion.js';
import { doctor } from './commands/doctor.js';
import { evict } from './commands/evict.js';
import { inspect } from './commands/inspect.js';
import { lead } from './commands/lead.js';
import { leader } from './commands/leader.js';
import { ls } from './commands/ls.js';
import { man } from './commands/man.js';
import { migrate } from './commands/migrate.js';
import { release } from './commands/release.js';
import { renew } from './commands/renew.js';
import { run } from './commands/run.js';
import { serve } from './commands/serve.js';
import { watch } from './commands/watch.js';
import { EXIT, Failure, failureOf, usageFailure } from './failure.js';
import { mistypedVariables, overriddenStore } from './options/environment.js';
import { parseInvocation } from './options/invocation.js';
import type { Outlet } from './printing/outlet.js';
import { jsonText, openTerminal, printable, quieted, type Terminal } from './printing/terminal.js';
import { version } from './version.js';

const COMMANDS: readonly Command[] = [
  run,
  lead,
  leader,
  acquire,
  renew,
  release,
  ls,
  inspect,
  evict,
  watch,
  doctor,
  migrate,
  serve,
  apiKey,
  completion,
  man,
];
/** Options of `serve` that are not settings. */
const NO_VARIABLES: readonly string[] = ['config', 'print-config'];
/** A stderr without a reader must not delay the exit. */
const STDERR_MS_MAX = 1_000;

async function dispatch(args: readonly string[], terminal: Terminal): Promise<number> {
  // `holdfast help run` works too.
  const [first, ...rest] = args;
  const invocation = parseInvocation(first === 'help' ? [...rest, '--help'] : args, COMMANDS);
  const { command, options } = invocation;
  if (options.has('help')) {
    terminal.out(command ? commandHelp(terminal, command) : generalHelp(terminal, COMMANDS));
    return EXIT.ok;
  }
  if (command) {
    const told = options.has('quiet') ? quieted(terminal) : terminal;
    for (const text of warningsFor(command, options.has('store'))) told.warn(text);
    return command.run(invocation, told, COMMANDS);
  }
  if (options.has('version')) {
    terminal.out(version());
    return EXIT.ok;
  }
  throw usageFailure(
    `a command is missing: ${COMMANDS.map(({ name }) => name).join(', ')}; see holdfast --help`,
  );
}

/** `serve` reports by itself which store is used. */
function warningsFor(command: Command, hasStore: boolean): string[] {
  const settings = ['store', ...serve.options.filter((name) => !NO_VARIABLES.includes(name))] as const;
  const mistyped = mistypedVariables(settings, command === serve);
  return command === serve || hasStore ? mistyped : [...mistyped, ...overriddenStore()];
}

/** One line for an expected failure; a stack trace for a bug. */
function report(error: unknown, json: boolean, terminal: Terminal): number {
  const failure = failureOf(error);
  if (!failure) {
    terminal.err(
      `holdfast: this is a bug, please report it: ${error instanceof Error ? error.stack : String(error)}`,
    );
    return EXIT.other;
  }
  const { status, details, message } = failure;
  const line = printable(message);
  terminal.err(json ? jsonText({ error: { status, message: line, ...details } }) : `holdfast: ${line}`);
  return status;
}

/** Resolves to the exit status, once all output is written. */
export async function runProgram(args: readonly string[], stdout: Outlet, stderr: Outlet): Promise<number> {
  // Read before the arguments are parsed: their errors are reported in this form too.
  const end = args.indexOf('--');
  const json = args.slice(0, end === -1 ? undefined : end).includes('--json');
  const terminal = openTerminal(stdout, stderr, process.env, json);
  let status: number;
  try {
    status = await dispatch(args, terminal);
  } catch (error) {
    status = report(error, json, terminal);
  }
  // Wait for the output, as every program does; `run` writes nothing to stdout.
  if (stdout.used) await stdout.flushed();
  const { failure } = stdout;
  // A reader that has left (`holdfast ls | head -1`) is not a failure.
  if (failure && failure.code !== 'EPIPE' && status === EXIT.ok) {
    status = report(
      new Failure(EXIT.other, `the output cannot be written: ${failure.message}`),
      json,
      terminal,
    );
  }
  await within(STDERR_MS_MAX, stderr.flushed());
  return status;
}
