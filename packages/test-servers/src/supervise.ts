/**
 * Starts a server on a free port, waits until it answers a real command, and returns the controls by which tests pause,
 * kill and restart it. When another process took the port first, it tries another port.
 */
import { type Child, type Launch, startChild } from './child.js';
import { nowMs, sleep } from './clock.js';
import { makeFolder, removeFolder } from './folders.js';
import { freePort } from './ports.js';

export interface Controls {
  readonly host: string;
  readonly port: number;
  /** Of the running process: another one after `restart`. */
  readonly pid: number;
  /** On the same port with the same folder. A running process is ended in order first. */
  restart(): Promise<void>;
  /** SIGSTOP, for the server and its children: connections stay, nothing answers. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** SIGKILL. Its files stay for `restart`. */
  kill(): Promise<void>;
  /** Ends it and removes its folder. May be called twice. */
  stop(): Promise<void>;
}

export interface Plan {
  readonly name: string;
  /** Called for every start. `port` is the same after the first start that succeeded. */
  readonly launch: (port: number, folder: string) => Launch | Promise<Launch>;
  /** Whether this process answers, and not another one on this port. A rejection means no. */
  readonly answers: (port: number, pid: number, folder: string) => Promise<boolean>;
  readonly gentle: NodeJS.Signals;
  readonly prepare?: (folder: string) => Promise<void>;
}

type Start = { readonly kind: 'up'; readonly child: Child } | { readonly kind: 'port taken' };

const HOST = '127.0.0.1';
const READY_MS_MAX = 90_000;
const PORTS_MAX = 20;
const PORT_TAKEN = /already in use|could not bind|cannot bind|failed to bind|resource busy/i;

async function startOnce(plan: Plan, folder: string, port: number): Promise<Start> {
  const child = await startChild(await plan.launch(port, folder));
  const endMs = nowMs() + READY_MS_MAX;
  let refusal: unknown;
  while (child.alive() && nowMs() < endMs) {
    try {
      if (await plan.answers(port, child.pid, folder)) return { kind: 'up', child };
    } catch (error) {
      refusal = error;
    }
    await sleep(15);
  }
  const ended = !child.alive();
  await child.end('SIGKILL');
  if (ended && PORT_TAKEN.test(child.log())) return { kind: 'port taken' };
  const what = ended ? 'ended before it answered' : `did not answer within ${READY_MS_MAX} ms`;
  throw new Error(`${plan.name} ${what}. It printed:\n${child.log()}`, { cause: refusal });
}

async function startSomewhere(plan: Plan, folder: string): Promise<{ child: Child; port: number }> {
  for (let attempt = 0; attempt < PORTS_MAX; attempt += 1) {
    const port = await freePort();
    const start = await startOnce(plan, folder, port);
    if (start.kind === 'up') return { child: start.child, port };
  }
  throw new Error(`${plan.name}: ${PORTS_MAX} ports in a row were taken`);
}

async function startAgain(plan: Plan, folder: string, port: number): Promise<Child> {
  const start = await startOnce(plan, folder, port);
  if (start.kind === 'up') return start.child;
  throw new Error(`${plan.name} cannot start again: another process took port ${port}`);
}

export async function supervise(plan: Plan): Promise<Controls> {
  const folder = makeFolder(plan.name);
  let first: { readonly child: Child; readonly port: number };
  try {
    await plan.prepare?.(folder);
    first = await startSomewhere(plan, folder);
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
  const { port } = first;
  let child = first.child;
  let stopped = false;
  return {
    host: HOST,
    port,
    get pid() {
      return child.pid;
    },
    restart: async () => {
      if (stopped) throw new Error(`${plan.name} was stopped, and its folder removed`);
      await child.end(plan.gentle);
      child = await startAgain(plan, folder, port);
    },
    pause: () => child.pause(),
    resume: async () => child.resume(),
    kill: () => child.end('SIGKILL'),
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await child.end(plan.gentle);
      removeFolder(folder);
    },
  };
}
