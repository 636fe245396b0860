/**
 * The contest: starts the four processes, kills the holder now and then with kill -9, brings a new process in its
 * place, and keeps the record of what was seen. It shows nothing itself; whoever listens does.
 */
import { fork } from 'node:child_process';
import { machineMs } from './machine-clock.js';

/**
 * What a worker says, and when: news of two workers may be heard in the wrong order.
 * @typedef {{ at: number } & (
 *   | { kind: 'acquired', token: number, waitedMs: number }
 *   | { kind: 'released', token: number })} Report
 */
/**
 * What happened, at so many milliseconds from the start.
 * @typedef {{ atMs: number, name: string } & (
 *   | { kind: 'joined' | 'left', pid: number }
 *   | { kind: 'killed', pid: number, token: number }
 *   | { kind: 'acquired', token: number, waitedMs: number }
 *   | { kind: 'took over', token: number, afterMs: number, from: string }
 *   | { kind: 'released', token: number })} ContestEvent
 */
/** @typedef {{ name: string, child: import('node:child_process').ChildProcess, fate: 'here' | 'killed' | 'left', grants: number }} Worker */

export const NAMES = ['amber', 'birch', 'cedar', 'dune'];
/** When the holder is killed, as shares of the whole time. */
const KILLS = [0.3, 0.65];
const BACK_AFTER_MS = 1_200;
/** Into its work, so that it surely holds. */
const KILL_DELAY_MS = 100;
const LEAVE_MS_MAX = 3_000;

export class Contest {
  /** @type {Map<string, Worker>} */
  workers = new Map();
  /** @type {ContestEvent[]} */
  events = [];
  /** @type {{ name: string, token: number } | null} */
  holder = null;
  #startedAt = machineMs();
  /** @type {{ name: string, at: number } | null} */
  #killed = null;
  #killsDone = 0;
  #ending = false;
  /** @type {NodeJS.Timeout[]} */
  #timers = [];

  /** @param {{ url: string, key: string, seconds: number, onEvent: (event: ContestEvent) => void }} options */
  constructor(options) {
    this.options = options;
  }

  get elapsedMs() {
    return machineMs() - this.#startedAt;
  }

  /** Nobody has taken over yet from one that was killed: on a slow machine the show needs longer. */
  get isUnfinished() {
    return this.#killed !== null || !this.events.some(({ kind }) => kind === 'took over');
  }

  start() {
    for (const name of NAMES) this.#join(name);
  }

  /** @param {string} name */
  #join(name) {
    const { url, key } = this.options;
    const child = fork(new URL('./worker.js', import.meta.url), [url, key, name], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    /** @type {Worker} */
    const worker = { name, child, fate: 'here', grants: this.workers.get(name)?.grants ?? 0 };
    this.workers.set(name, worker);
    child.on('message', (message) => this.#hear(worker, /** @type {Report} */ (message)));
    child.on('exit', () => {
      if (worker.fate === 'here') worker.fate = 'left';
    });
    this.#note(machineMs(), { name, kind: 'joined', pid: child.pid ?? 0 });
  }

  /** @param {Worker} worker @param {Report} report */
  #hear(worker, report) {
    const { name } = worker;
    const { at, token } = report;
    if (report.kind === 'released') {
      if (this.holder?.name === name) this.holder = null;
      this.#note(at, { name, kind: 'released', token });
      return;
    }
    this.holder = { name, token };
    worker.grants += 1;
    const killed = this.#killed;
    if (killed && at > killed.at) {
      this.#killed = null;
      this.#note(at, { name, kind: 'took over', token, afterMs: at - killed.at, from: killed.name });
    } else {
      this.#note(at, { name, kind: 'acquired', token, waitedMs: report.waitedMs });
    }
    this.#considerKilling(worker, token);
  }

  /** @param {Worker} worker @param {number} token */
  #considerKilling(worker, token) {
    const share = KILLS[this.#killsDone];
    if (share === undefined || this.elapsedMs < share * this.options.seconds * 1_000 || this.#ending) return;
    this.#killsDone += 1;
    this.#later(KILL_DELAY_MS, () => {
      const { pid } = worker.child;
      if (this.holder?.token !== token || pid === undefined) return;
      process.kill(pid, 'SIGKILL');
      const at = machineMs();
      this.#killed = { name: worker.name, at };
      this.holder = null;
      worker.fate = 'killed';
      this.#note(at, { name: worker.name, kind: 'killed', pid, token });
      this.#later(BACK_AFTER_MS, () => this.#join(worker.name));
    });
  }

  /** @param {number} delayMs @param {() => void} run */
  #later(delayMs, run) {
    this.#timers.push(
      setTimeout(() => {
        if (!this.#ending) run();
      }, delayMs),
    );
  }

  /** Asks all to leave, and ends those that do not. */
  async end() {
    this.#ending = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([...this.workers.values()].map((worker) => this.#leave(worker)));
  }

  /** @param {Worker} worker */
  async #leave({ name, child, fate }) {
    if (fate !== 'here' || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    if (child.connected) child.send('leave');
    const limit = setTimeout(() => child.kill('SIGKILL'), LEAVE_MS_MAX);
    await gone;
    clearTimeout(limit);
    this.#note(machineMs(), { name, kind: 'left', pid: child.pid ?? 0 });
  }

  /**
   * @param {number} at
   * @param {ContestEvent extends infer H ? H extends ContestEvent ? Omit<H, 'atMs'> : never : never} what
   */
  #note(at, what) {
    const event = /** @type {ContestEvent} */ ({ ...what, atMs: at - this.#startedAt });
    this.events.push(event);
    this.options.onEvent(event);
  }
}
