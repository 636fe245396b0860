/**
 * Locks for one process, in a Map, decided by `decide`. For tests, and for work that stays in the process.
 *
 * Atomic because nothing here awaits. The clock is this process's monotonic one, started at the wall clock's time, so
 * that a wall clock set by hand changes nothing. No reply can be lost. Each command deletes a few expired records, as
 * `expendableAt` allows.
 *
 * Of a hold that was released by `apply.atOnce` only its token is remembered, until the clock has passed it (see
 * `RecentTokens`): its commands were sent once, so none of them can come late. Otherwise a hundred thousand locks a second,
 * each on a key of its own, would leave three million records.
 */
import { steadyMs } from '../clock.js';
import {
  type Apply,
  type Command,
  decide,
  EMPTY_STATE,
  expendableAt,
  type Guarantees,
  KEEP_MS,
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

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** The store's time in milliseconds. For tests. Default: the process's monotonic clock. */
  readonly now?: () => number;
}

type Listener = (key: string, why: Why) => void;

/** Records that each command checks for clean-up, and how many commands are counted before they are checked. */
const CLEANUP_PER_COMMAND = 2;
const CLEANUP_COMMANDS = 16;
/** Processes that are known to send once. Forgotten, one is known again by its next claim; until then its marks are kept. */
const PROCESSES_MAX = 1_000;

/** Makes a store in the memory of this process: for one process, and for tests. Each call makes an empty one. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptionNames(options, ['now']);
  const now = options.now ?? steadyMs;
  const time = (): number => Math.floor(now());
  let states = new Map<string, State>();
  let sweeping = states.entries();
  const recent = new RecentTokens();
  const listeners = new Map<string, Set<Listener>>();
  /** Processes whose claims came by `atOnce`: none of those can come again. */
  const sendingOnce = new Set<string>();
  let commandsSinceCleanUp = 0;
  let closed = false;

  function answer(commands: readonly Command[], isSentOnce: boolean): readonly (Reply | Error)[] {
    const at = time();
    const replies: (Reply | Error)[] = [];
    for (const command of commands) replies.push(tryOne(command, at, isSentOnce));
    commandsSinceCleanUp += commands.length;
    if (commandsSinceCleanUp >= CLEANUP_COMMANDS) cleanUp(at);
    return replies;
  }

  /** What fails rejects its command alone, not its batch. */
  function tryOne(command: Command, at: number, isSentOnce: boolean): Reply | Error {
    try {
      return applyOne(command, at, isSentOnce);
    } catch (error) {
      return error instanceof Error ? error : new Error('The command failed.', { cause: error });
    }
  }

  function applyOne(command: Command, at: number, isSentOnce: boolean): Reply {
    const { key } = command;
    if (closed) throw new UnsupportedError('This memory store is closed.', { key });
    if (isSentOnce && command.kind === 'claim') {
      if (sendingOnce.size >= PROCESSES_MAX) sendingOnce.clear();
      sendingOnce.add(command.hold.process);
    }
    const { state, changed, reply, wakes } = decide(states.get(key) ?? recent.stateOf(key, at), command, at);
    if (changed) {
      const process = isSentOnce && command.kind === 'release' ? command.hold.process : null;
      if (process !== null && sendingOnce.has(process) && recent.canKeep(state, process, at)) {
        forget(key);
        recent.keep(key, state, at);
      } else states.set(key, state);
    }
    for (const wake of wakes) deliver(key, wake);
    return reply;
  }

  /** A map that was emptied is replaced, for the reason that `RecentTokens` gives. Clean-up must not go on in the old one. */
  function forget(key: string): void {
    if (states.size > 1) states.delete(key);
    else if (states.has(key)) {
      states = new Map();
      sweeping = states.entries();
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
      // Most records changed a moment ago, which shows without a look at their marks.
      const isOld = state.decision < (at - KEEP_MS) * 1_000;
      if (isOld && expendableAt(state) <= at) states.delete(key);
    }
  }

  const apply: Apply = Object.assign(
    (commands: readonly Command[]) =>
      answer(commands, false).map((reply) =>
        reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply),
      ),
    { atOnce: (commands: readonly Command[]) => answer(commands, true) },
  );

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
    apply,
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
      states = new Map();
    },
  };
}

/** The milliseconds by which a token may be ahead of the clock to be kept here: a first block is, by less than two. */
const AHEAD_MS = 3;
/** Longer than that. */
const GENERATION_MS = 4;

/**
 * The tokens of keys that were released a moment ago, so that the next one is above. In two generations, each dropped as
 * a whole: a map in which every entry is deleted again keeps what it once held alive until a major garbage collection.
 */
class RecentTokens {
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  #nextMs = 0;
  /** The highest of each generation, and of all that were dropped. */
  #youngMax = 0;
  #oldMax = 0;
  #droppedMax = 0;

  /** Whether nothing is left of the key but a mark of the process, and a token that the clock will pass soon. */
  canKeep(state: State, process: string, at: number): boolean {
    const { token, decision, holders, rests, waiters, ended, evictions } = state;
    const isEmpty = holders.length + rests.length + waiters.length + evictions.length === 0;
    const isLastEnd = ended.length === 0 || (ended.length === 1 && ended[0]?.process === process);
    return isEmpty && isLastEnd && Math.max(token, decision) < (at + AHEAD_MS) * 1_000;
  }

  keep(key: string, { token, decision }: State, at: number): void {
    this.#rotate(at);
    const last = Math.max(token, decision);
    this.#young.set(key, last);
    this.#youngMax = Math.max(this.#youngMax, last);
  }

  stateOf(key: string, at: number): State | null {
    this.#rotate(at);
    const last = this.#young.get(key) ?? this.#old.get(key);
    if (last !== undefined) return { ...EMPTY_STATE, token: last, decision: last };
    // The clock went back: any key may be one of those.
    const isBack = at * 1_000 <= this.#droppedMax;
    return isBack ? { ...EMPTY_STATE, token: this.#droppedMax, decision: this.#droppedMax } : null;
  }

  #rotate(at: number): void {
    if (at < this.#nextMs) return;
    this.#droppedMax = Math.max(this.#droppedMax, this.#oldMax);
    this.#old = this.#young;
    this.#oldMax = this.#youngMax;
    this.#young = new Map();
    this.#nextMs = at + GENERATION_MS;
  }
}
