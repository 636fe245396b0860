/** The command that runs under the lock: started with our own input and output, signalled, killed with all it started. */
import { Worker } from 'node:worker_threads';
import type { Order, Told } from './child-thread.js';
import { after } from './clock.js';
import { EXIT, Failure, SIGNAL_BASE } from './exit.js';
import { printable } from './output.js';
import { descendantsOf, endOf } from './process-tree.js';
import { statusOfSignal } from './signals.js';

export interface Child {
  readonly pid: number;
  /** Its exit status, 128 + n when signal n ended it. Never rejects. */
  readonly ended: Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** KILL, to it and to every process under it. */
  kill(): void;
}

/** Rejects with the shell's 126 or 127 when the command cannot be started. */
export type StartChild = (commandLine: readonly string[], environment: NodeJS.ProcessEnv) => Promise<Child>;

/** A signal that tells of an end could be missed; nobody should wait for ever then. */
const LOOK_MS = 1_000;

/** Apart from the start, as it takes a while: what has to be checked right before the start can be. */
export async function prepareChild(): Promise<StartChild> {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  // Where an end cannot be seen before it is collected, nothing waits for that.
  if (endOf(process.pid) === undefined) gate[0] = 1;
  // Not connected with `process.stdout` and `process.stderr`: it writes nothing.
  const streams = { stdout: true, stderr: true };
  try {
    const file = new URL('./child-thread.js', import.meta.url);
    const thread = new Worker(file, { workerData: gate, ...streams });
    await new Promise<void>((resolve, reject) => {
      thread.once('online', resolve);
      thread.once('error', reject);
    });
    return (commandLine, environment) => start(thread, gate, { commandLine, environment });
  } catch (error) {
    // Too many processes or too little memory, for the command as well.
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure(EXIT.other, `no thread to start the command from: ${why}`);
  }
}

async function start(thread: Worker, gate: Int32Array, order: Order): Promise<Child> {
  const lookout = new Lookout(gate);
  const fail = (told: { code: unknown; message: string }): Failure =>
    startFailure(order.commandLine[0] ?? '', told);
  let end = (_status: number): void => undefined;
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  const pid = await new Promise<number>((resolve, reject) => {
    thread.on('message', (told: Told) => {
      if (told.kind === 'started') resolve(told.pid);
      else if (told.kind === 'failed') reject(fail(told));
      else end(statusOf(told, lookout.stop()));
    });
    // Never seen. Without it the status would be lost, and this process with it.
    thread.on('error', ({ message }) => {
      reject(fail({ code: undefined, message }));
      lookout.stop();
      end(EXIT.other);
    });
    thread.postMessage(order);
  });
  lookout.follow(pid);
  const signal = (name: NodeJS.Signals): void => {
    if (!lookout.isOver) send(pid, name);
  };
  const kill = (): void => {
    const descendants = descendantsOf(pid);
    signal('SIGKILL');
    for (const descendant of descendants) send(descendant, 'SIGKILL');
  };
  return { pid, ended, signal, kill };
}

/** Sees how the command ended before it is collected. Until then its process id cannot be that of another. */
class Lookout {
  readonly #gate: Int32Array;
  #pid: number | null = null;
  #signalNumber = 0;
  #cancel = (): void => undefined;
  isOver = false;

  constructor(gate: Int32Array) {
    this.#gate = gate;
  }

  follow(pid: number): void {
    if (this.isOver) return;
    this.#pid = pid;
    process.on('SIGCHLD', this.#look);
    this.#look();
  }

  /** The number of the signal that ended it; 0 when there was none, or it could not be seen. */
  stop(): number {
    this.isOver = true;
    this.#cancel();
    process.off('SIGCHLD', this.#look);
    return this.#signalNumber;
  }

  readonly #look = (): void => {
    this.#cancel();
    if (this.#pid === null || this.isOver) return;
    const end = endOf(this.#pid);
    if (end === null) {
      this.#cancel = after(LOOK_MS, this.#look);
      return;
    }
    this.#signalNumber = end?.signal ?? 0;
    // Where nothing can be seen, the thread will tell.
    this.isOver = end !== undefined;
    Atomics.store(this.#gate, 0, 1);
    Atomics.notify(this.#gate, 0);
  };
}

/** Only an exit is an exit: a 0 that comes with a signal without a name is none. */
function statusOf(told: Extract<Told, { kind: 'ended' }>, signalNumber: number): number {
  if (told.signal) return statusOfSignal(told.signal);
  if (signalNumber > 0) return SIGNAL_BASE + signalNumber;
  return told.status ?? EXIT.other;
}

function startFailure(command: string, { code, message }: { code: unknown; message: string }): Failure {
  const name = printable(command);
  if (code === 'ENOENT')
    return new Failure(EXIT.notFound, `${name}: command not found`, { code: 'not-found' });
  const why = code === 'EACCES' ? 'permission denied' : message;
  return new Failure(EXIT.notExecutable, `${name}: cannot be executed: ${why}`, { code: 'not-executable' });
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Gone already, or run as another user by then: nothing more that we could do to it.
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM')))
      throw error;
  }
}
