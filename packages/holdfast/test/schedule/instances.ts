/** Instances of one schedule: each with its own wall clock and its own connection to one store, in simulated time. */
import type { LocksOptions } from '../../src/api.js';
import type { Clock, Timer } from '../../src/clock.js';
import { openLocks } from '../../src/locks.js';
import type { Store } from '../../src/protocol/store.js';
import { memoryStore } from '../../src/stores/memory.js';
import { FakeClock, StagedStore } from '../engine/stage.js';

/** The true time of simulated time 0. */
export const EPOCH_MS = 1_790_000_000_000;

/** The clock of one machine: its wall clock is `offMs` ahead of the true time. */
export class MachineClock implements Clock {
  offMs: number;
  /** Its process was killed: no code of it runs any more. */
  isDead = false;
  random: () => number;
  readonly #time: FakeClock;

  constructor(time: FakeClock, offMs: number, random: () => number) {
    this.#time = time;
    this.offMs = offMs;
    this.random = random;
  }

  monotonicMs = (): number => this.#time.nowMs;
  wallMs = (): number => EPOCH_MS + this.#time.nowMs + this.offMs;
  randomId = (): string => this.#time.randomId();
  afterTurn = (run: () => void): void => this.#time.afterTurn(() => this.#run(run));
  timer = (delayMs: number, run: () => void): Timer => this.#time.timer(delayMs, () => this.#run(run));

  #run(run: () => void): void {
    if (!this.isDead) run();
  }

  /** Resolves after this time, unless the process is killed. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timer(ms, resolve);
    });
  }
}

export interface Instance {
  readonly name: string;
  readonly clock: MachineClock;
  readonly store: StagedStore;
  readonly locks: ReturnType<typeof openLocks>;
}

export interface World {
  readonly time: FakeClock;
  readonly memory: Store;
  /** The true time. */
  nowMs(): number;
  open(offMs?: number, options?: LocksOptions): Instance;
}

/** `random`: draws for all instances. */
export function world(random: () => number = () => 0.5): World {
  const time = new FakeClock();
  const nowMs = (): number => EPOCH_MS + time.nowMs;
  const memory = memoryStore({ now: nowMs });
  let count = 0;
  return {
    time,
    memory,
    nowMs,
    open(offMs = 0, options = {}) {
      const name = `i${count++}`;
      const clock = new MachineClock(time, offMs, random);
      const store = new StagedStore(memory);
      return { name, clock, store, locks: openLocks(store, { owner: name, ...options }, clock) };
    },
  };
}
