/** Runs the real `holdfast` binary in processes of its own, and sees to it that none of them outlives its test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** Set by the set-up of the run. */
export const BINARY = process.env.HOLDFAST_TEST_COMMAND ?? '';
const PATIENCE_MS = 60_000;

/** A program for Node that says each signal that it gets, and ends with status 7 on the last line of its input. */
export const SIGNAL_TELLER = `
  for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM']) {
    process.on(name, () => console.log('got ' + name));
  }
  process.stdin.resume().on('end', () => process.exit(7));
  console.log('ready');`;

export interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly child: ChildProcess;
  /** Resolves once stdout has matched. */
  said(pattern: RegExp): Promise<RegExpMatchArray>;
  kill(signal: NodeJS.Signals): void;
}

export interface Place {
  /** An empty folder. */
  readonly folder: string;
  /** The URL of a database in it, which every command uses. */
  readonly store: string;
  start(args: readonly string[], environment?: NodeJS.ProcessEnv): Running;
  run(args: readonly string[], environment?: NodeJS.ProcessEnv): Promise<Ended>;
  /** Resolves once this many wait in the queue of the key. */
  waiting(key: string, count: number): Promise<void>;
  /** A program that is not `holdfast`, ended with the rest. */
  startOther(command: string, args: readonly string[]): Running;
}

/** A fresh place for every test of the file. */
export function usePlace(): Place {
  let folder = '';
  const started: Running[] = [];

  function launch(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Running {
    // In a session of its own: no keys of the terminal that runs the tests, and one group to end.
    const child = spawn(command, args, {
      cwd: folder,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...surroundings(), HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}`, ...environment },
    });
    const running = follow(child);
    started.push(running);
    return running;
  }
  const start: Place['start'] = (args, environment) =>
    launch(process.execPath, [BINARY, ...args], environment);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
  });
  afterEach(async () => {
    for (const { pid } of started) killGroup(pid);
    await Promise.all(started.map(({ ended }) => ended));
    started.length = 0;
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    get store() {
      return `sqlite:${join(folder, 'locks.db')}`;
    },
    start,
    run: (args, environment) => start(args, environment).ended,
    async waiting(key, count) {
      const deadline = Date.now() + PATIENCE_MS;
      while (Date.now() < deadline) {
        const { stdout } = await start(['inspect', key, '--json']).ended;
        if (JSON.parse(stdout).waiters.length === count) return;
      }
      throw new Error(`There were never ${count} in the queue of ${key}`);
    },
    startOther: (command, args) => launch(command, args),
  };
}

/** Without variables for the tests themselves: the command names those that it does not know. */
function surroundings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_')));
}

function follow(child: ChildProcess): Running {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (text) => {
    stdout += text;
  });
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (status, signal) => resolve({ status, signal, stdout, stderr }));
  });
  const pid = child.pid ?? 0;
  return {
    pid,
    ended,
    child,
    async said(pattern) {
      return until(
        () => stdout.match(pattern),
        () => `${pattern} in:\n${stdout}\n${stderr}`,
      );
    },
    kill: (signal) => void process.kill(pid, signal),
  };
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Asks again until there is an answer. */
export async function until<T>(ask: () => T | null | undefined | false, what: () => string): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    const answer = ask();
    if (answer) return answer;
    await sleep(10);
  }
  throw new Error(`Waited in vain for ${what()}`);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether it still runs; one that has ended and was not collected yet does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
