/** Runs the `holdfast` command in this process, and exits. */
import { stderr, stdout } from './printing/standard-streams.js';
import { runProgram } from './program.js';

/** Warnings for developers, not for users: Node's SQLite is experimental, the AWS SDK will drop old versions of Node. */
const HIDDEN_WARNINGS = /^SQLite is an experimental feature|^NodeVersionSupportWarning/;

function hideWarnings(): void {
  const warn = process.emitWarning;
  process.emitWarning = (...args: unknown[]): void => {
    if (!HIDDEN_WARNINGS.test(String(args[0]))) Reflect.apply(warn, process, args);
  };
}

hideWarnings();
// Without a listener, USR1 would open Node's debugger.
process.on('SIGUSR1', function goOn() {});
// Exits at once: an open connection of a client would keep the process alive.
void runProgram(process.argv.slice(2), stdout, stderr).then((status) => process.exit(status));
