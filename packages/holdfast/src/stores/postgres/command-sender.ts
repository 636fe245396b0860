/** Sends batches of commands through a transport and settles each command. It never repeats a command that may have run. */
import { type Clock, systemClock } from '../../clock.js';
import { type Command, checkVersion, type Reply } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';
import { groupedBy } from '../clients/grouped.js';
import { isLockedOut, isOfOneCommand, isOverLimit } from './errors.js';
import { type Chain, chainsOf, isRenewal, type PendingCommand } from './statement-groups.js';

/** How long a key whose row was locked gets statements of its own. */
const APART_MS = 5_000;
const APART_MAX = 1_000;
/** Piggyback clean-up, at most once a second: delete up to twice the commands sent since, within these bounds. */
const CLEAN_UP_MS = 1_000;
const CLEAN_UP_MIN = 1_000;
const CLEAN_UP_MAX = 4_000;

export type Answer = Reply | { readonly error: string; readonly version?: number };

/** A call of the function `apply`. */
export interface Call {
  readonly commands: readonly Command[];
  /** How many expired records to delete. */
  readonly cleanUp: number;
  /** Whether to send wake-ups. */
  readonly hints: boolean;
  /** Whether a key occurs more than once. */
  readonly repeats: boolean;
  /** Go first on a shared connection: a renewal. */
  readonly urgent: boolean;
}

/** Reaches the function `apply`: over a connection, or over HTTP. */
export interface Transport {
  /** The most commands per call; renewals always travel together. */
  readonly mostTogether: number;
  /** Resolves with the result of `apply`. If the server refuses, rejects with an error whose `code` is the SQLSTATE. */
  send(call: Call): Promise<readonly Answer[]>;
  /** The error that a command is rejected with. */
  explain(error: unknown, key: string): unknown;
  /** Called for every failed call. */
  failed?(error: unknown): void;
}

export class CommandSender {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #apart = new Map<string, number>();
  #cleanedAt = Number.NEGATIVE_INFINITY;
  #sent = 0;

  constructor(transport: Transport, clock: Clock = systemClock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    const pending: PendingCommand[] = [];
    const replies = commands.map(
      (command) => new Promise<Reply>((resolve, reject) => pending.push({ command, resolve, reject })),
    );
    if (pending.length === 1) {
      void this.#send(pending);
      return replies;
    }
    const isApart = this.#apart.size === 0 ? () => false : (key: string) => this.#isApart(key);
    for (const chain of chainsOf(pending, isApart, this.#transport.mostTogether)) void this.#follow(chain);
    return replies;
  }

  async #follow(chain: Chain): Promise<void> {
    for (const pending of chain) await this.#send(pending);
  }

  /** Settles every command, and never rejects. */
  async #send(pending: readonly PendingCommand[], hints = true): Promise<void> {
    try {
      const commands = pending.map(({ command }) => command);
      const answers = await this.#transport.send({
        commands,
        cleanUp: this.#cleanUp(pending),
        hints,
        repeats: new Set(commands.map(({ key }) => key)).size < commands.length,
        urgent: pending.every(isRenewal),
      });
      for (const [index, one] of pending.entries()) settle(one, answers[index]);
    } catch (error) {
      this.#transport.failed?.(error);
      // NOTIFY has reached a limit of the server: send the commands without wake-ups.
      if (hints && isOverLimit(error)) await this.#send(pending, false);
      else if (pending.length > 1 && isOfOneCommand(error)) await this.#sendEach(pending);
      else this.#fail(pending, error);
    }
  }

  #fail(pending: readonly PendingCommand[], error: unknown): void {
    for (const { command, reject } of pending) {
      if (isLockedOut(error)) this.#setApart(command.key);
      reject(this.#transport.explain(error, command.key));
    }
  }

  /** Sends the keys one by one, so that a locked row delays its own commands only (F30). */
  async #sendEach(pending: readonly PendingCommand[]): Promise<void> {
    const byKey = groupedBy(pending, ({ command }) => command.key);
    await Promise.all([...byKey.values()].map((own) => this.#follow(own.map((one) => [one]))));
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

function settle({ command, resolve, reject }: PendingCommand, answer: Answer | undefined): void {
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

/** The result of `apply` or `apply_one`; `isolated` if it did nothing because its transaction is not READ COMMITTED. */
export function answersIn(text: unknown): readonly Answer[] | 'isolated' {
  const answers: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
  if (Array.isArray(answers)) return answers as readonly Answer[];
  if (isObject(answers)) return 'isolation' in answers ? 'isolated' : [answers as unknown as Answer];
  throw new Error('PostgreSQL returned an invalid list of replies.');
}
