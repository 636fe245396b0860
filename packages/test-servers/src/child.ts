/**
 * One process of a server. Its output goes to a file. It ends with the process that started it: by a signal of the kernel
 * where `setpriv` is installed, otherwise when that process exits.
 */
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './clock.js';
import { findOnPath } from './find.js';
import { type Guard, startGuard } from './guard.js';
import { childrenOf, signal, stateOf } from './process-tree.js';
import type { User } from './unprivileged.js';

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly user?: User | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Child {
  readonly pid: number;
  readonly alive: () => boolean;
  /** The last part of its output, since this start. */
  readonly log: () => string;
  /** SIGSTOP to it and its children; resolves when all of them are stopped. */
  readonly pause: () => Promise<void>;
  readonly resume: () => void;
  /** Waits until it and its children have ended; SIGKILL after the limit. */
  readonly end: (name: NodeJS.Signals) => Promise<void>;
}

const LOG_CHARACTERS = 3000;
const GENTLE_MS_MAX = 10_000;
const GONE_MS_MAX = 10_000;
const living = new Set<number>();

// Before the listener of the same event that removes the folders.
process.prependListener('exit', () => {
  for (const pid of living) for (const each of [pid, ...childrenOf(pid)]) signal(each, 'SIGKILL');
});

function tied(launch: Launch): { readonly file: string; readonly args: readonly string[] } {
  const setpriv = process.platform === 'linux' ? findOnPath('setpriv') : undefined;
  if (setpriv === undefined) return { file: launch.command, args: launch.args };
  return { file: setpriv, args: ['--pdeathsig', 'KILL', '--', launch.command, ...launch.args] };
}

async function untilStopped(pids: readonly number[]): Promise<void> {
  await until('stopping processes', GONE_MS_MAX, () => pids.every((pid) => stateOf(pid) !== 'running'), 2);
}

/** The parent first: it could start another child otherwise. */
async function pauseAll(pid: number): Promise<void> {
  signal(pid, 'SIGSTOP');
  await untilStopped([pid]);
  const children = childrenOf(pid);
  for (const child of children) signal(child, 'SIGSTOP');
  await untilStopped(children);
}

function resumeAll(pid: number): void {
  for (const each of [...childrenOf(pid), pid]) signal(each, 'SIGCONT');
}

/**
 * A process that we started has ended when its `exit` event came: before that the kernel lists it as a zombie, and its
 * port may still be open.
 */
const isGone = (pid: number): boolean => !living.has(pid) && stateOf(pid) === 'gone';

async function allGone(pids: readonly number[], waitMsMax: number): Promise<boolean> {
  try {
    await until('ending processes', waitMsMax, () => pids.every(isGone), 5);
    return true;
  } catch (error) {
    if (!pids.every(isGone)) return false;
    throw error;
  }
}

/** Children are listed before their parent ends: afterwards the system no longer knows whose they were. */
async function endAll(pid: number, name: NodeJS.Signals): Promise<void> {
  if (name === 'SIGKILL') await pauseAll(pid);
  else resumeAll(pid);
  const family = [pid, ...childrenOf(pid)];
  if (name !== 'SIGKILL') {
    signal(pid, name);
    if (await allGone(family, GENTLE_MS_MAX)) return;
  }
  for (const each of [...family, ...childrenOf(pid)]) signal(each, 'SIGKILL');
  if (await allGone(family, GONE_MS_MAX)) return;
  throw new Error(`processes ${family.join(', ')} survive SIGKILL`);
}

export async function startChild(launch: Launch): Promise<Child> {
  const logFile = join(launch.folder, 'output.log');
  const output = openSync(logFile, 'a');
  const logBegin = fstatSync(output).size;
  const { file, args } = tied(launch);
  const started = spawn(file, args, {
    cwd: launch.folder,
    stdio: ['ignore', output, output],
    env: { ...process.env, ...launch.env },
    ...(launch.user ?? {}),
  });
  closeSync(output);
  await new Promise<void>((resolve, reject) => {
    started.once('spawn', resolve);
    started.once('error', reject);
  });
  const pid = started.pid as number;
  living.add(pid);
  started.once('exit', () => living.delete(pid));
  // A server that was not stopped must not keep this process alive.
  started.unref();
  let guard: Guard | undefined;
  const alive = (): boolean => living.has(pid);
  return {
    pid,
    alive,
    log: () => readFileSync(logFile).subarray(logBegin).toString('utf8').slice(-LOG_CHARACTERS),
    pause: async () => {
      await pauseAll(pid);
      guard?.dismiss();
      guard = startGuard([pid, ...childrenOf(pid)]);
    },
    resume: () => {
      guard?.dismiss();
      resumeAll(pid);
    },
    end: async (name) => {
      if (alive()) await endAll(pid, name);
      guard?.dismiss();
    },
  };
}
