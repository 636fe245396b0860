/**
 * The command under the lock: it inherits our input and output, gets our signals, and is killed with all its descendants.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { EXIT, Failure, reasonOf } from '../failure.js';
import { codeOf } from '../printing/outlet.js';
import { printable } from '../printing/terminal.js';
import { statusOfSignal } from './signals.js';

export interface Child {
  readonly pid: number;
  /** Exit status, 128 + n when signal n ended it. Never rejects. */
  readonly ended: Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** Sends TERM to the command. Remembers its descendants, because those of a shell outlive it. */
  terminate(): void;
  /** Sends KILL to the command, to its descendants, and to those remembered. Also after the command has ended. */
  kill(): void;
}

/** A process with its start time, because a later process may get the same id. */
interface Remembered {
  readonly pid: number;
  readonly startedAt: string | null;
}

/** Rejects with the shell's 126 or 127 when the command cannot be started. */
export async function startChild(
  commandLine: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<Child> {
  const [command = '', ...args] = commandLine;
  try {
    return await spawnChild(command, args, environment);
  } catch (error) {
    throw startFailure(command, error);
  }
}

function spawnChild(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Child> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env });
    // The listener stays: a signal to a command that changed its user is an error, too, and must not cause a crash.
    child.on('error', reject);
    const ended = new Promise<number>((end) => {
      child.once('exit', (status, signal) => end(status ?? (signal ? statusOfSignal(signal) : EXIT.other)));
    });
    const signal = (name: NodeJS.Signals): void => void child.kill(name);
    child.once('spawn', () => {
      const pid = child.pid as number;
      let remembered: readonly Remembered[] = [];
      const terminate = (): void => {
        remembered = descendantsOf(pid).map((each) => ({ pid: each, startedAt: startOf(each) }));
        signal('SIGTERM');
      };
      const kill = (): void => {
        const left = remembered.filter((each) => startOf(each.pid) === each.startedAt);
        const hasEnded = child.exitCode !== null || child.signalCode !== null;
        const descendants = hasEnded ? [] : descendantsOf(pid);
        for (const each of left) descendants.push(each.pid, ...descendantsOf(each.pid));
        signal('SIGKILL');
        for (const descendant of descendants) sendKill(descendant);
      };
      resolve({ pid, ended, signal, terminate, kill });
    });
  });
}

function startFailure(command: string, error: unknown): Failure {
  const name = printable(command);
  const code = codeOf(error);
  if (code === 'ENOENT')
    return new Failure(EXIT.notFound, `${name}: command not found`, { code: 'not-found' });
  const why = code === 'EACCES' ? 'permission denied' : reasonOf(error);
  return new Failure(EXIT.notExecutable, `${name}: cannot be executed: ${why}`, { code: 'not-executable' });
}

function sendKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended already, or runs as another user: nothing more can be done.
    if (codeOf(error) !== 'ESRCH' && codeOf(error) !== 'EPERM') throw error;
  }
}

/**
 * The descendants of a process: with KILL, a command cannot end its own children. Reads /proc. Empty if that cannot be
 * read: then only the command itself gets signals.
 */
export function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of processes()) {
    const stat = /^\d+$/.test(name) ? statOf(name) : null;
    const parent = Number(stat?.[1]);
    if (stat) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  const seen = [pid];
  for (const next of seen) {
    for (const child of children.get(next) ?? []) {
      found.push(child);
      seen.push(child);
    }
  }
  return found;
}

function processes(): readonly string[] {
  try {
    return process.platform === 'linux' ? readdirSync('/proc') : [];
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return [];
  }
}

/** The start time of the process, in ticks since the system's start. Null when it has ended. */
function startOf(pid: number): string | null {
  return statOf(String(pid))?.[19] ?? null;
}

/** The third and later fields of /proc/PID/stat. Null when the process has ended meanwhile, or is hidden. */
function statOf(pid: string): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may contain anything, brackets and spaces too.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return null;
  }
}
