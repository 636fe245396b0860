/**
 * The thread that starts the command and collects it. Node tells an end by a signal that it has no name for (a
 * real-time one) as an exit with 0. The kernel knows better, but only until the process is collected: so this thread
 * stands still from the start of the command until the main thread has seen that it ended and how (see `child.ts`).
 */
import { spawn } from 'node:child_process';
import { parentPort, workerData } from 'node:worker_threads';

export interface Order {
  readonly commandLine: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

export type Told =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'failed'; readonly code: unknown; readonly message: string }
  | { readonly kind: 'ended'; readonly status: number | null; readonly signal: NodeJS.Signals | null };

/** 0 until the command may be collected. */
const gate: Int32Array = workerData;

function tell(told: Told): void {
  parentPort?.postMessage(told);
}

function fail(error: unknown): void {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  tell({ kind: 'failed', code, message: error instanceof Error ? error.message : String(error) });
}

parentPort?.once('message', ({ commandLine, environment }: Order) => {
  const [command = '', ...args] = commandLine;
  try {
    const child = spawn(command, args, { stdio: 'inherit', env: environment });
    child.once('error', fail);
    child.once('exit', (status, signal) => tell({ kind: 'ended', status, signal }));
    child.once('spawn', () => {
      if (child.pid === undefined) return fail(new Error('started without a process id'));
      tell({ kind: 'started', pid: child.pid });
      Atomics.wait(gate, 0, 0);
    });
  } catch (error) {
    fail(error);
  }
});
