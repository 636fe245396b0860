/** A stage for engine tests: time that only moves when told, and a store whose answers can be held back or lost. */
import type { Locks, LocksOptions } from '../../src/api.js';
import type { Clock, Timer } from '../../src/clock.js';
import { openLocks } from '../../src/locks.js';
import type { Command, Reply } from '../../src/protocol/commands.js';
import type { Store, Traits } from '../../src/protocol/store.js';
import { memoryStore } from '../../src/stores/memory.js';

interface Due {
  atMs: number;
  run: () => void;
  alive: boolean;
}

/** Lets everything settle that waits for no timer. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class FakeClock implements Clock {
  nowMs = 1_000;
  wallOffsetMs = 1_790_000_000_000;
  /** How long the machine slept. */
  asleepMs = 0;
  timers = new Set<Due>();
  #ids = 0;

  monotonicMs(): number {
    return this.nowMs;
  }

  wallMs(): number {
    return this.nowMs + this.wallOffsetMs;
  }

  afterTurn(run: () => void): void {
    setImmediate(run);
  }

  random(): number {
    return 0.5;
  }

  randomId(): string {
    this.#ids += 1;
    return `random-${this.#ids}`;
  }

  timer(delayMs: number, run: () => void): Timer {
    const due: Due = { atMs: this.nowMs + Math.max(Math.ceil(delayMs), 0), run, alive: true };
    this.timers.add(due);
    return {
      cancel: () => this.timers.delete(due),
      keepAlive: (yes) => {
        due.alive = yes;
      },
    };
  }

  /** Timers run when they are due; promises settle in between. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    await settle();
    for (;;) {
      const [next] = [...this.timers].filter((due) => due.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (!next) break;
      this.timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.nowMs = untilMs;
  }

  /** The machine sleeps: time passes for everybody else, and the monotonic clock stands still. */
  sleep(ms: number): void {
    this.asleepMs += ms;
    this.wallOffsetMs += ms;
  }

  /** The process stands still: time passes and no timer runs. */
  pause(ms: number): void {
    this.nowMs += ms;
  }
}

/**
 * What becomes of a command: it passes; it is lost on the way; its reply is lost; it is refused; its reply is kept
 * until `deliver`.
 */
export type Fate = 'pass' | 'lost' | 'reply-lost' | 'rejected' | 'kept';

export class StagedStore implements Store {
  readonly name = 'staged';
  readonly traits: Traits;
  readonly applied: Command[] = [];
  batches = 0;
  fate: (command: Command) => Fate = () => 'pass';
  hints = true;
  readonly inner: Store;
  #kept: (() => void)[] = [];

  constructor(inner: Store, traits: Partial<Traits> = {}) {
    this.inner = inner;
    this.traits = { ...inner.traits, ...traits };
  }

  apply(commands: readonly Command[]): Promise<Reply>[] {
    this.batches += 1;
    return commands.map((command) => {
      this.applied.push(command);
      const fate = this.fate(command);
      if (fate === 'lost') return new Promise<Reply>(() => undefined);
      if (fate === 'rejected') return Promise.reject(new Error('connection refused'));
      const [reply] = this.inner.apply([command]);
      if (!reply) throw new Error('no reply');
      if (fate === 'reply-lost') return new Promise<Reply>(() => undefined);
      if (fate === 'pass') return reply;
      return new Promise<Reply>((resolve) => this.#kept.push(() => resolve(reply)));
    });
  }

  /** Hands out the replies kept so far. */
  deliver(): void {
    for (const hand of this.#kept.splice(0)) hand();
  }

  countOf(kind: Command['kind']): number {
    return this.applied.filter((command) => command.kind === kind).length;
  }

  /** Says that hints no longer come, or come again. */
  hears: (hearing: boolean) => void = () => undefined;

  listen(...[inbox, wake, hears]: Parameters<NonNullable<Store['listen']>>): Promise<() => Promise<void>> {
    const { listen } = this.inner;
    if (!listen) throw new Error('the inner store cannot listen');
    this.hears = (hearing) => {
      this.hints = hearing;
      hears?.(hearing);
    };
    return listen(inbox, (key, why) => {
      if (this.hints) wake(key, why);
    });
  }

  read: Store['read'] = (key) => this.inner.read(key);
  list: Store['list'] = (query) => this.inner.list(query);
  probe: Store['probe'] = () => this.inner.probe();
  close: Store['close'] = () => Promise.resolve();
}

export interface Stage {
  readonly clock: FakeClock;
  readonly memory: Store;
  /** Another process on the same memory. */
  open(
    options?: LocksOptions,
    traits?: Partial<Traits>,
  ): { readonly locks: Locks; readonly store: StagedStore };
}

export function stage(): Stage {
  const clock = new FakeClock();
  const memory = memoryStore({ now: () => 1_790_000_000_000 + clock.nowMs + clock.asleepMs });
  return {
    clock,
    memory,
    open(options = {}, traits = {}) {
      const store = new StagedStore(memory, traits);
      return { store, locks: openLocks(store, options, clock) };
    },
  };
}

/** What a promise has come to, without waiting for it. */
export function watchOf<T>(promise: Promise<T>): {
  state: 'pending' | 'done' | 'failed';
  value?: T;
  error?: unknown;
} {
  const watched: { state: 'pending' | 'done' | 'failed'; value?: T; error?: unknown } = { state: 'pending' };
  promise.then(
    (value) => {
      watched.state = 'done';
      watched.value = value;
    },
    (error: unknown) => {
      watched.state = 'failed';
      watched.error = error;
    },
  );
  return watched;
}
