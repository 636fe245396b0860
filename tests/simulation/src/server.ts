/**
 * The simulated store: what all processes of a world share. Decides by `decide` with a clock of its own that never
 * steps, deletes what `expendableAt` allows, and knows who listens. It never fails: everything that goes wrong goes
 * wrong on the way (see network.ts).
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

/** Where the store's time stands when the world's is 0. */
export const STORE_EPOCH_MS = 1_750_000_000_000;
/** How many commands pass between two looks for records that may go. */
const CLEANUP_EVERY = 200;

export type Hear = (key: string, why: Why) => void;

export interface Decided {
  readonly command: Command;
  /** The network brought it a second time. */
  readonly isCopy: boolean;
  readonly before: State | null;
  readonly decision: Decision;
  readonly now: number;
}

/** Is told of every decision, before anybody else hears of it. */
export type Witness = (decided: Decided) => void;

export class Server {
  readonly states = new Map<string, State>();
  readonly #inboxes = new Map<string, Hear>();
  readonly #schedule: Schedule;
  readonly #witness: Witness;
  #commands = 0;

  constructor(schedule: Schedule, witness: Witness) {
    this.#schedule = schedule;
    this.#witness = witness;
  }

  /** Exactly; `decide` sees whole milliseconds. */
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
    this.#witness({ command, isCopy, before, decision, now: this.now });
    for (const wake of decision.wakes) this.#send(command.key, wake);
    return decision.reply;
  }

  listen(inbox: string, hear: Hear): void {
    this.#inboxes.set(inbox, hear);
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
