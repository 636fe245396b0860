/** The command that runs under the lock: started with our own input and output, signalled, killed with all it started. */
import { spawn } from 'node:child_process';
import { EXIT, Failure } from './exit.js';
import { printable } from './output.js';
import { descendantsOf } from './process-tree.js';
import { statusOfSignal } from './signals.js';

export interface Child {
  readonly pid: number;
  /** Its exit status, 128 + n when signal n ended it. Never rejects. */
  readonly ended: Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** KILL, to it and to every process under it. */
  kill(): void;
}

/** Rejects with the shell's 126 or 127 when it cannot be started. */
export async function startChild(
  commandLine: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<Child> {
  const [command = '', ...args] = commandLine;
  try {
    const child = spawn(command, args, { stdio: 'inherit', env: environment });
    const ended = new Promise<number>((resolve) => {
      child.once('exit', (status, signal) =>
        resolve(signal ? statusOfSignal(signal) : (status ?? EXIT.other)),
      );
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    const { pid } = child;
    if (pid === undefined) throw new Error('started without a process id');
    // Later errors are signals that could not be sent; the process is then gone, or no longer ours to signal.
    child.on('error', () => undefined);
    return {
      pid,
      ended,
      signal: (name) => void child.kill(name),
      kill() {
        const descendants = descendantsOf(pid);
        child.kill('SIGKILL');
        for (const descendant of descendants) killProcess(descendant);
      },
    };
  } catch (error) {
    throw startFailure(command, error);
  }
}

function startFailure(command: string, error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const name = printable(command);
  if (code === 'ENOENT')
    return new Failure(EXIT.notFound, `${name}: command not found`, { code: 'not-found' });
  const why =
    code === 'EACCES' ? 'permission denied' : error instanceof Error ? error.message : String(error);
  return new Failure(EXIT.notExecutable, `${name}: cannot be executed: ${why}`, { code: 'not-executable' });
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // Gone already, or run as another user by then: nothing more that we could do to it.
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM')))
      throw error;
  }
}
