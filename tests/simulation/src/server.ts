/**
 * The simulated store, shared by all processes. Decides with `decide` on its own clock, which never steps; deletes records
 * that `expendableAt` allows to delete; sends wake-ups to its listeners. It never fails: faults happen in the network
 * (network.ts).
 */
import {
  type Command,
  type Decision,
  decide,
  expendableAt,
  type Reply,
  type Snapshot,
  type State,
  snapshotOf,
  type Wake,
  type Why,
} from './library.js';
import type { Schedule } from './schedule.js';

/** The store's time at the start of the simulation. */
export const STORE_EPOCH_MS = 1_750_000_000_000;
/** Clean up after this many commands. */
const CLEANUP_EVERY = 200;

export type Receive = (key: string, why: Why) => void;

export interface Decided {
  readonly command: Command;
  /** A duplicate made by the network. */
  readonly isCopy: boolean;
  readonly before: State | null;
  readonly decision: Decision;
  readonly now: number;
}

/** Called for every decision, before its reply and wake-ups are sent. */
export type OnDecision = (decided: Decided) => void;

/** What the checks look at. */
export interface StoreView {
  readonly states: ReadonlyMap<string, State>;
  /** The store's time, with fractions; `decide` sees whole milliseconds. */
  readonly exactMs: number;
  readonly now: number;
  /** Whether a process that cannot reach these servers gets answers now. */
  answers(unreachable: ReadonlySet<number>): boolean;
  listen(inbox: string, receive: Receive): void;
  stopListening(inbox: string): void;
}

export class Server implements StoreView {
  readonly states = new Map<string, State>();
  readonly #inboxes = new Map<string, Receive>();
  readonly #schedule: Schedule;
  readonly #onDecision: OnDecision;
  #commands = 0;

  constructor(schedule: Schedule, onDecision: OnDecision) {
    this.#schedule = schedule;
    this.#onDecision = onDecision;
  }

  get exactMs(): number {
    return STORE_EPOCH_MS + this.#schedule.nowMs;
  }

  get now(): number {
    return Math.floor(this.exactMs);
  }

  decide(command: Command, isCopy: boolean): Reply {
    this.#commands += 1;
    if (this.#commands % CLEANUP_EVERY === 0) this.#cleanUp();
    const before = this.states.get(command.key) ?? null;
    const decision = decide(before, command, this.now);
    if (decision.changed) this.states.set(command.key, decision.state);
    this.#onDecision({ command, isCopy, before, decision, now: this.now });
    for (const wake of decision.wakes) this.#send(command.key, wake);
    return decision.reply;
  }

  answers(): boolean {
    return true;
  }

  listen(inbox: string, receive: Receive): void {
    this.#inboxes.set(inbox, receive);
  }

  stopListening(inbox: string): void {
    this.#inboxes.delete(inbox);
  }

  read(key: string): Snapshot | null {
    return snapshotOf(key, this.states.get(key) ?? null, this.now);
  }

  #send(key: string, { inbox, why }: Wake): void {
    this.#inboxes.get(inbox)?.(key, why);
  }

  #cleanUp(): void {
    for (const [key, state] of this.states) {
      if (expendableAt(state) <= this.now) this.states.delete(key);
    }
  }
}
