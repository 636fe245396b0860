/**
 * Many clients wait for one key on a compare-and-swap engine, in simulated time: each client is a process of its own, calls
 * take a few milliseconds each way, and the engine serves one call at a time. Counts the calls that reach the engine.
 */
import type { Found, Written } from 'holdfast/compare-and-swap';
import { CompareAndSwap } from 'holdfast/compare-and-swap';
import {
  type Command,
  type Lease,
  openLocks,
  type Reply,
  type State,
  type Store,
  type Traits,
  type Why,
} from './src/library.js';
import { SimulatedProcess } from './src/process.js';
import { RandomSource } from './src/random-source.js';
import { Schedule } from './src/schedule.js';

export interface CrowdOptions {
  readonly seed: number;
  /** True: waiters are woken, and a refused write does not return the current record. False: the opposite. */
  readonly push: boolean;
  /** The longest latency each way, and the time that the engine needs per call. */
  readonly wayMs: number;
  readonly serviceMs: number;
  /** The shortest latency each way. Default: a fifth of the longest. */
  readonly wayMsMin?: number;
}

/** Called when an attempt of a command was answered, or failed, with the time since its first attempt. */
type OnAnswer = (command: Command, tookMs: number, outcome: Reply | Error) => void;

interface Client {
  readonly process: SimulatedProcess;
  readonly locks: ReturnType<typeof openLocks>;
}

const WALL_MS = 1_790_000_000_000;

export class Crowd {
  readonly schedule = new Schedule();
  readonly count = { reads: 0, writes: 0, stored: 0 };
  /** When the key was last released; set by the releasing client. */
  releasedAtMs = 0;
  onAnswer: OnAnswer = () => undefined;
  readonly #options: CrowdOptions;
  readonly #random: RandomSource;
  readonly #traits: Traits;
  readonly #listeners = new Map<string, (key: string, why: Why) => void>();
  /** When the first attempt of each pending command was sent. */
  readonly #sentMs = new Map<string, number>();
  #text: string | null = null;
  #revision = 0;
  #busyUntilMs = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
    this.#random = new RandomSource(options.seed);
    this.#traits = {
      clock: 'estimate',
      clockErrorMs: 0,
      push: options.push,
      queue: true,
      shared: 'network',
      durable: true,
      livenessPollMs: null,
    };
  }

  open(name: string): Client {
    const [client] = this.openMany(name, 1);
    if (!client) throw new Error('No client was opened.');
    return client;
  }

  /** Clients of one process that share a store. */
  openMany(name: string, count: number): readonly Client[] {
    const process = new SimulatedProcess(name, this.schedule, this.#random.fork());
    const store = this.#storeFor(process);
    return Array.from({ length: count }, () => ({ process, locks: openLocks(store, {}, process.clock) }));
  }

  get lineLength(): number {
    return this.#find().state?.waiters.length ?? 0;
  }

  /** The outcome of something that takes simulated time. */
  async awaited<T>(work: Promise<T>, msMax: number): Promise<T> {
    const untilMs = this.schedule.nowMs + msMax;
    let settled = false;
    const done = work.finally(() => {
      settled = true;
    });
    while (!settled && this.schedule.nowMs < untilMs) await this.schedule.runUntil(this.schedule.nowMs + 10);
    if (!settled) throw new Error(`Not within ${msMax} ms.`);
    return await done;
  }

  #find(): Found<number> {
    const state = this.#text === null ? null : (JSON.parse(this.#text) as State);
    return { state, version: this.#revision, lateMs: 0 };
  }

  #call<T>(process: SimulatedProcess, serve: () => T): Promise<T> {
    const { schedule } = this;
    const { wayMs, serviceMs, wayMsMin = wayMs / 5 } = this.#options;
    const onWayMs = (): number => this.#random.between(wayMsMin, wayMs);
    return new Promise((resolve) => {
      schedule.quietlyAfter(onWayMs(), () => {
        this.#busyUntilMs = Math.max(this.#busyUntilMs, schedule.nowMs) + serviceMs;
        schedule.quietlyAfter(this.#busyUntilMs - schedule.nowMs, () => {
          const answer = serve();
          schedule.after(onWayMs(), () => process.deliver(() => resolve(answer)));
        });
      });
    });
  }

  #write(next: State, seen: Found<number>): Written<number> {
    if (seen.version !== this.#revision) {
      return { kind: 'changed', found: this.#options.push ? null : this.#find() };
    }
    this.count.stored += 1;
    this.#revision += 1;
    this.#text = JSON.stringify(next);
    return { kind: 'written', version: this.#revision, lateMs: 0 };
  }

  #timed(commands: readonly Command[], replies: readonly Promise<Reply>[]): readonly Promise<Reply>[] {
    for (const [index, command] of commands.entries()) {
      if (command.kind === 'evict') continue;
      const { process, number } = command.hold;
      const id = `${command.kind} ${process} ${number}`;
      const sinceMs = this.#sentMs.get(id) ?? this.schedule.nowMs;
      this.#sentMs.set(id, sinceMs);
      const onEnd = (outcome: Reply | Error): void => {
        if (!(outcome instanceof Error)) this.#sentMs.delete(id);
        this.onAnswer(command, this.schedule.nowMs - sinceMs, outcome);
      };
      replies[index]?.then(onEnd, onEnd);
    }
    return replies;
  }

  #storeFor(process: SimulatedProcess): Store {
    const now = (): number => WALL_MS + Math.floor(this.schedule.nowMs);
    const time = {
      reading: () => ({ earliest: now(), latest: now() }),
      isFresh: () => true,
      sample: async () => undefined,
    };
    const swap = new CompareAndSwap<number>(
      {
        absent: { state: null, version: 0, lateMs: 0 },
        read: () => {
          this.count.reads += 1;
          return this.#call(process, () => this.#find());
        },
        write: (_key, next, seen) => {
          this.count.writes += 1;
          return this.#call(process, () => this.#write(next, seen));
        },
        wake: (key, wakes) => {
          for (const { inbox, why } of wakes) {
            const wake = (): void => this.#listeners.get(inbox)?.(key, why);
            this.schedule.after(this.#options.wayMs, wake);
          }
        },
      },
      time,
      { name: 'crowd', queue: true, clock: process.clock },
    );
    return {
      name: 'crowd',
      traits: this.#traits,
      apply: (commands) => this.#timed(commands, swap.apply(commands)),
      ...(this.#traits.push && {
        listen: async (inbox: string, wake: (key: string, why: Why) => void) => {
          this.#listeners.set(inbox, (key, why) =>
            process.deliver(() => {
              if (why === 'waiting') swap.refresh(key);
              wake(key, why);
            }),
          );
          return async () => undefined;
        },
      }),
      read: (key) => swap.read(key),
      async *list() {},
      probe: async () => ({ server: 'crowd', now: now(), findings: [] }),
      close: async () => swap.close(),
    };
  }
}

/** Every client acquires, works and releases. Returns the times from each release to the next grant; the array grows. */
export function waitInCrowd(crowd: Crowd, size: number, workMs: number): number[] {
  const gapsMs: number[] = [];
  for (let made = 0; made < size; made++) {
    const { process, locks } = crowd.open(`client ${made}`);
    const use = async (lease: Lease): Promise<void> => {
      gapsMs.push(crowd.schedule.nowMs - crowd.releasedAtMs);
      await process.sleep(workMs);
      crowd.releasedAtMs = crowd.schedule.nowMs;
      await lease.release();
    };
    void locks.acquire('k', { ttl: 3_000, wait: 600_000 }).then(use);
  }
  return gapsMs;
}
