/**
 * Locks for one process, in a Map, decided by `decide`. For tests, and for work that stays in the process.
 *
 * Atomic because nothing here awaits. The clock is this process's monotonic one, started at the wall clock's time, so
 * that a wall clock set by hand changes nothing. No reply can be lost. Each command deletes a few expired records, as
 * `expendableAt` allows.
 */
import { steadyMs } from '../clock.js';
import {
  type Command,
  decide,
  expendableAt,
  type Guarantees,
  keysInOrder,
  type ListQuery,
  type Reply,
  type Snapshot,
  type State,
  type Stop,
  type Store,
  snapshotOf,
  UnsupportedError,
  type Wake,
  type Why,
} from '../protocol/index.js';
import { checkOptionNames } from '../protocol/option-names.js';

export interface MemoryStoreOptions {
  /** The store's time in milliseconds. For tests. */
  readonly now?: () => number;
}

type Listener = (key: string, why: Why) => void;

/** Records that each command checks for clean-up, and how many commands are counted before they are checked. */
const CLEANUP_PER_COMMAND = 2;
const CLEANUP_COMMANDS = 16;

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptionNames(options, ['now']);
  const now = options.now ?? steadyMs;
  const time = (): number => Math.floor(now());
  const states = new Map<string, State>();
  const listeners = new Map<string, Set<Listener>>();
  let sweeping = states.entries();
  let commandsSinceCleanUp = 0;
  let closed = false;

  function applyOne(command: Command, at: number): Promise<Reply> {
    try {
      if (closed) throw new UnsupportedError('This memory store is closed.', { key: command.key });
      const { state, changed, reply, wakes } = decide(states.get(command.key) ?? null, command, at);
      if (changed) states.set(command.key, state);
      for (const wake of wakes) deliver(command.key, wake);
      return Promise.resolve(reply);
    } catch (error) {
      // Rejects this command alone, not its batch.
      return Promise.reject(error);
    }
  }

  function deliver(key: string, { inbox, why }: Wake): void {
    for (const listener of listeners.get(inbox) ?? []) queueMicrotask(() => listener(key, why));
  }

  function cleanUp(at: number): void {
    const steps = commandsSinceCleanUp * CLEANUP_PER_COMMAND;
    commandsSinceCleanUp = 0;
    for (let step = 0; step < steps; step++) {
      const next = sweeping.next();
      if (next.done) {
        sweeping = states.entries();
        return;
      }
      const [key, state] = next.value;
      if (expendableAt(state) <= at) states.delete(key);
    }
  }

  return {
    name: 'memory',
    traits: {
      clock: 'machine',
      clockErrorMs: 0,
      push: true,
      queue: true,
      shared: 'process',
      durable: false,
      livenessPollMs: null,
    },
    apply(commands) {
      const at = time();
      const replies = commands.map((command) => applyOne(command, at));
      commandsSinceCleanUp += commands.length;
      if (commandsSinceCleanUp >= CLEANUP_COMMANDS) cleanUp(at);
      return replies;
    },
    listen(inbox, wake): Promise<Stop> {
      const own = listeners.get(inbox) ?? new Set();
      listeners.set(inbox, own.add(wake));
      return Promise.resolve(async () => {
        own.delete(wake);
        if (own.size === 0) listeners.delete(inbox);
      });
    },
    read(key) {
      return Promise.resolve(snapshotOf(key, states.get(key) ?? null, time()));
    },
    async *list(query: ListQuery): AsyncIterable<Snapshot> {
      let left = query.limit ?? Number.POSITIVE_INFINITY;
      for (const key of keysInOrder(states.keys(), query)) {
        if (left <= 0) return;
        const snapshot = snapshotOf(key, states.get(key) ?? null, time());
        if (!snapshot) continue;
        left -= 1;
        yield snapshot;
      }
    },
    probe(): Promise<Guarantees> {
      return Promise.resolve({
        server: `this process (Node ${process.version})`,
        now: time(),
        findings: [
          {
            level: 'good',
            text: "Time is this process's monotonic clock: setting the wall clock changes nothing.",
          },
          {
            level: 'warning',
            text: 'Only callers in this process exclude each other, and a restart forgets everything.',
          },
        ],
      });
    },
    async close() {
      closed = true;
      listeners.clear();
      states.clear();
    },
  };
}
