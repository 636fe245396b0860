/**
 * Locks for one process, in a Map, decided by `decide`. For tests, and for work that stays in the process.
 *
 * Atomic, because this code never awaits. The clock is this process's monotonic one, started at the wall clock's time, so
 * that setting the wall clock changes nothing. No reply can be lost. Each command deletes a few expired records, as
 * `expendableAt` allows.
 *
 * A key that was released by `apply.atOnce` is forgotten: its commands were sent once, so none of them can come late.
 * Otherwise a hundred thousand locks per second, each on its own key, would leave three million records. The store keeps
 * one number for all forgotten keys, the highest token used on any of them, so that their next tokens are higher.
 */
import { steadyMs } from '../clock.js';
import {
  type Apply,
  type Command,
  type Decision,
  decide,
  expendableAt,
  type Guarantees,
  KEEP_MS,
  keysInOrder,
  type ListQuery,
  type Release,
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
import { emptyState } from '../protocol/state.js';

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** The store's time in milliseconds. For tests. Default: the process's monotonic clock. */
  readonly now?: () => number;
}

type Listener = (key: string, why: Why) => void;

/** Records that each command checks for clean-up, and how many commands are counted before they are checked. */
const CLEANUP_PER_COMMAND = 2;
const CLEANUP_COMMANDS = 16;
/** After a look at all records, clean-up rests: none can be deleted before it is `KEEP_MS` old. */
const CLEANUP_REST_MS = 100;
/** The most processes known to send once. A forgotten one is known again by its next claim; until then its marks stay. */
const PROCESSES_MAX = 1_000;
/** A key whose tokens are further ahead of the clock is not forgotten: it would put the tokens of all keys ahead. */
const AHEAD_MS = 3;

/** Makes a store in the memory of this process: for one process, and for tests. Each call makes an empty one. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptionNames(options, ['now']);
  const now = options.now ?? steadyMs;
  const time = (): number => Math.floor(now());
  let records = new Records();
  const listeners = new Map<string, Set<Listener>>();
  /** Processes whose claims came by `atOnce`, and so cannot come again. */
  const sendingOnce = new Set<string>();
  /** The highest token of a key that was read: an operator may evict everybody up to it. */
  let shownToken = 0;
  let closed = false;

  function answer(commands: readonly Command[], isSentOnce: boolean): readonly (Reply | Error)[] {
    const at = time();
    records.commands += commands.length;
    if (records.commands >= CLEANUP_COMMANDS) records.cleanUp(at);
    const [first] = commands;
    // Most calls have one command, and a list that grows reserves room for sixteen.
    if (first && commands.length === 1) return [tryOne(first, at, isSentOnce)];
    return commands.map((command) => tryOne(command, at, isSentOnce));
  }

  /** An error rejects its command alone, not its batch. */
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
    const decision = decide(records.states.get(key) ?? records.unknownState(at), command, at);
    const isForgotten = isSentOnce && command.kind === 'release' && forget(command, decision, at);
    if (decision.changed && !isForgotten) records.states.set(key, decision.state);
    for (const wake of decision.wakes) deliver(key, wake);
    return decision.reply;
  }

  /** Forgets a key whose record has nothing but a mark of its last holder. */
  function forget({ key, hold, tokenUsed }: Release, { state, reply }: Decision, at: number): boolean {
    const { token, decision, holders, rests, waiters, ended, evictions } = state;
    const isEmpty = holders.length + rests.length + waiters.length + evictions.length === 0;
    const isLastEnd = ended.length === 0 || (ended.length === 1 && ended[0]?.process === hold.process);
    if (!isEmpty || !isLastEnd || !sendingOnce.has(hold.process)) return false;
    // Tokens that were reserved since its grant are its own, unless it had ended before. None that was shown is given back:
    // an eviction up to it would end the next holder too (F31).
    const wasHeld = reply.kind === 'released' && reply.held;
    const lastToken = wasHeld ? Math.max(tokenUsed ?? token, Math.min(shownToken, token)) : token;
    return records.forget(key, Math.max(lastToken, decision), at);
  }

  function deliver(key: string, { inbox, why }: Wake): void {
    for (const listener of listeners.get(inbox) ?? []) queueMicrotask(() => listener(key, why));
  }

  function show(key: string): Snapshot | null {
    const snapshot = snapshotOf(key, records.states.get(key) ?? null, time());
    if (snapshot && snapshot.token > shownToken) shownToken = snapshot.token;
    return snapshot;
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
      return Promise.resolve(show(key));
    },
    async *list(query: ListQuery): AsyncIterable<Snapshot> {
      let left = query.limit ?? Number.POSITIVE_INFINITY;
      for (const key of keysInOrder(records.states.keys(), query)) {
        if (left <= 0) return;
        const snapshot = show(key);
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
      records = new Records();
    },
  };
}

/** The records of the keys, and the highest token or decision number of forgotten keys. */
class Records {
  states = new Map<string, State>();
  /** Since the last clean-up. */
  commands = 0;
  #forgotten = 0;
  /** Where clean-up is. Null while it rests: V8 keeps all tables that a map has outgrown for its iterators. */
  #sweeping: Iterator<[string, State]> | null = null;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** The state of a key without a record. Null once the clock has passed all forgotten tokens. */
  unknownState(at: number): State | null {
    return at * 1_000 > this.#forgotten ? null : emptyState(this.#forgotten);
  }

  /** `last`: the highest number used. Returns false, and forgets nothing, while that is too far ahead of the clock. */
  forget(key: string, last: number, at: number): boolean {
    if (last >= (at + AHEAD_MS) * 1_000) return false;
    if (last > this.#forgotten) this.#forgotten = last;
    if (this.states.size > 1) this.states.delete(key);
    else if (this.states.has(key)) {
      // Replaced for the reason that `KeyQueues` gives. Clean-up must not go on in the old one.
      this.states = new Map();
      this.#sweeping = null;
    }
    return true;
  }

  cleanUp(at: number): void {
    const steps = this.commands * CLEANUP_PER_COMMAND;
    this.commands = 0;
    if (at < this.#restsUntil) return;
    this.#sweeping ??= this.states.entries();
    for (let step = 0; step < steps; step++) {
      const next = this.#sweeping.next();
      if (next.done) {
        this.#sweeping = null;
        this.#restsUntil = at + CLEANUP_REST_MS;
        return;
      }
      const [key, state] = next.value;
      // Most records changed a moment ago, which shows without a look at their marks.
      const isOld = state.decision < (at - KEEP_MS) * 1_000;
      if (isOld && expendableAt(state) <= at) this.states.delete(key);
    }
  }
}
