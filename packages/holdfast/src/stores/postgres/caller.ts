/** Sends statements and settles the commands in them. Nothing here decides, waits or tries twice what might be done. */
import { type Clock, systemClock } from '../../clock.js';
import { type Command, checkVersion, type Reply } from '../../protocol/index.js';
import { type Chain, chainsOf, isRenewal, type Slot } from './statements.js';
import { isLockedOut, isOfOneCommand, isOverLimit } from './trouble.js';

/** How long a key whose row was locked by somebody else is kept away from the others. */
const APART_MS = 5_000;
const APART_MAX = 1_000;
/** Records that may go are deleted by the way, once a second at most: twice as many as came, and never few. */
const CLEAN_UP_MS = 1_000;
const CLEAN_UP_MIN = 1_000;
const CLEAN_UP_MAX = 4_000;

export type Answer = Reply | { readonly error: string; readonly version?: number };

/** The way to the function `apply`: a connection, or HTTP. */
export interface Line {
  /** How many commands one call has at most; renewals, for which nobody waits, travel together. */
  readonly mostTogether: number;
  /** One call. Rejects with an error that has a `code`, the SQLSTATE, where the server spoke. */
  ask(
    commands: readonly Command[],
    cleanUp: number,
    hints: boolean,
    urgent: boolean,
  ): Promise<readonly Answer[]>;
  /** What a command is rejected with. */
  inWords(error: unknown, key: string): unknown;
  /** Told of every call that failed. */
  failed?(error: unknown): void;
}

export class Caller {
  readonly #line: Line;
  readonly #clock: Clock;
  readonly #apart = new Map<string, number>();
  #cleanedAt = Number.NEGATIVE_INFINITY;
  #sent = 0;

  constructor(line: Line, clock: Clock = systemClock) {
    this.#line = line;
    this.#clock = clock;
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const slots: Slot<Reply>[] = [];
    const replies = commands.map(
      (command) => new Promise<Reply>((resolve, reject) => slots.push({ command, resolve, reject })),
    );
    if (slots.length === 1) {
      void this.#send(slots);
      return replies;
    }
    const isApart = this.#apart.size === 0 ? () => false : (key: string) => this.#isApart(key);
    for (const chain of chainsOf(slots, isApart, this.#line.mostTogether)) void this.#follow(chain);
    return replies;
  }

  async #follow(chain: Chain<Reply>): Promise<void> {
    for (const slots of chain) await this.#send(slots);
  }

  /** Settles every slot, and never rejects. */
  async #send(slots: readonly Slot<Reply>[], hints = true): Promise<void> {
    try {
      const commands = slots.map(({ command }) => command);
      const answers = await this.#line.ask(commands, this.#cleanUp(slots), hints, slots.every(isRenewal));
      for (const [index, slot] of slots.entries()) settle(slot, answers[index]);
    } catch (error) {
      this.#line.failed?.(error);
      // The commands matter, the hints do not.
      if (hints && isOverLimit(error)) await this.#send(slots, false);
      else if (slots.length > 1 && isOfOneCommand(error)) await this.#sendEach(slots);
      else this.#fail(slots, error);
    }
  }

  #fail(slots: readonly Slot<Reply>[], error: unknown): void {
    for (const { command, reject } of slots) {
      if (isLockedOut(error)) this.#setApart(command.key);
      reject(this.#line.inWords(error, command.key));
    }
  }

  /** One slow row holds up nobody but those who want it (F30). */
  async #sendEach(slots: readonly Slot<Reply>[]): Promise<void> {
    const byKey = new Map<string, Slot<Reply>[]>();
    for (const slot of slots) byKey.set(slot.command.key, [...(byKey.get(slot.command.key) ?? []), slot]);
    await Promise.all([...byKey.values()].map((own) => this.#follow(own.map((slot) => [slot]))));
  }

  #cleanUp({ length }: readonly unknown[]): number {
    this.#sent += length;
    const now = this.#clock.monotonicMs();
    if (now - this.#cleanedAt < CLEAN_UP_MS) return 0;
    const count = Math.min(Math.max(this.#sent * 2, CLEAN_UP_MIN), CLEAN_UP_MAX);
    this.#cleanedAt = now;
    this.#sent = 0;
    return count;
  }

  #setApart(key: string): void {
    if (this.#apart.size >= APART_MAX) this.#apart.clear();
    this.#apart.set(key, this.#clock.monotonicMs() + APART_MS);
  }

  #isApart(key: string): boolean {
    const until = this.#apart.get(key);
    if (until === undefined) return false;
    if (until > this.#clock.monotonicMs()) return true;
    this.#apart.delete(key);
    return false;
  }
}

function settle({ command, resolve, reject }: Slot<Reply>, answer: Answer | undefined): void {
  try {
    if (answer === undefined || answer === null) throw new Error('PostgreSQL left a command unanswered.');
    if (!('error' in answer)) {
      resolve(answer);
      return;
    }
    if (answer.error === 'version') checkVersion(answer.version, command.key);
    if (answer.error === 'tokens') throw new RangeError('The tokens of this key are used up.');
    throw new Error(`PostgreSQL refused a command: ${answer.error}.`);
  } catch (error) {
    reject(error);
  }
}

/** What `apply` gives back; `isolated` where it did nothing, since its transaction sees an earlier moment. */
export function answersIn(answers: unknown): readonly Answer[] | 'isolated' {
  if (Array.isArray(answers)) return answers as readonly Answer[];
  if (typeof answers === 'object' && answers !== null && 'isolation' in answers) return 'isolated';
  throw new Error('PostgreSQL answered something that is no list of replies.');
}
