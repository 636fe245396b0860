/** Lock services in processes of their own, which tests kill and start again, and short ways to use them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Claim, Command, Reply, Store } from 'holdfast/protocol';
import { atTheEnd } from '../scene.js';

export { atTheEnd, clearScene, freshFile, pause, until } from '../scene.js';

const SCRIPT = fileURLToPath(new URL('service.js', import.meta.url));
const START_MS_MAX = 30_000;

/** A service that stays at its address, however often it is killed and started again. */
export class ServiceProcess {
  readonly #where: string;
  #child: ChildProcess | null = null;
  #port = 0;

  /** `memory`, or the path of an SQLite file. */
  constructor(where: string) {
    this.#where = where;
    atTheEnd(() => this.kill());
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    const child = spawn(process.execPath, [SCRIPT, this.#where, String(this.#port)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child = child;
    const said = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('The service did not start in time.')), START_MS_MAX);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`The service ended with ${code}.`)));
      child.stdout?.once('data', (text) => {
        clearTimeout(timer);
        resolve(String(text).trim());
      });
    });
    this.#port = Number(new URL(said).port);
    return this;
  }

  get port(): number {
    return this.#port;
  }

  /** Breaks the streams on which clients hear wake-ups; how many there were. */
  cutStreams(): Promise<number> {
    const child = this.#child;
    return new Promise((resolve) => {
      child?.stdout?.once('data', (text) => resolve(Number(text)));
      child?.stdin?.write('cut\n');
    });
  }

  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(name);
  }

  /** As a crash does it: nothing is said to anybody. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Asks it to close. */
  async finish(): Promise<void> {
    const child = this.#child;
    const gone = new Promise((resolve) => child?.once('exit', resolve));
    child?.stdin?.end();
    await gone;
  }
}

export interface Fake {
  readonly url: string;
  readonly server: Server;
  /** How many requests came, by path. */
  readonly asked: string[];
}

/** Something at an address that is no service. */
export async function fakeService(answer: RequestListener): Promise<Fake> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atTheEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, asked };
}

let processes = 0;

export function claimOf(key: string, more: Partial<Claim> = {}): Claim {
  processes += 1;
  return {
    kind: 'claim',
    key,
    hold: { process: `process-of-test-${process.pid}-${processes}`, number: 1 },
    owner: 'test',
    permits: 1,
    capacity: 1,
    ttlMs: 30_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export async function say(store: Store, command: Command): Promise<Reply> {
  const [reply] = store.apply([command]);
  if (!reply) throw new Error('No reply.');
  return await reply;
}
