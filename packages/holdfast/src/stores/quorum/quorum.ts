/**
 * Asks all members at once, and waits for as many answers as it takes. Knows which servers are members: those that a
 * majority is enrolled with.
 */
import type { Clock } from '../../clock.js';
import { NotExecutedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';
import { groupedBy } from '../clients/grouped.js';
import {
  type Greeting,
  type Member,
  type MemberReply,
  otherSize,
  type Request,
  type Seat,
} from './member.js';
import { QuorumTime } from './quorum-time.js';

/** A majority that has not answered by then is not awaited any longer. The engine waits far less. */
const ANSWERS_MS_MAX = 3_000;
/** Once a majority has answered, and its answers differ, the others get as long again, and at least this. */
const REST_MS_MIN = 10;

/** Who needs a greeting meanwhile shares the one that is under way. */
const GREETING_MS = 100;

export interface Round<T> {
  readonly answers: readonly { readonly member: number; readonly reply: T }[];
  /** Every member without an answer has certainly not executed the request. */
  readonly isCertain: boolean;
}

export class Quorum {
  readonly members: readonly Member[];
  readonly majority: number;
  readonly clock: Clock;
  readonly time: QuorumTime;
  /** Where each member was enrolled when it was greeted. Only those are asked. */
  readonly #seats: (Seat | undefined)[] = [];
  /** Greetings under way, by member. */
  readonly #greetings = new Map<number, { readonly sentMs: number; readonly answer: Promise<Greeting> }>();
  /** The id of the quorum, once a majority has named it. */
  #id: string | null = null;

  constructor(members: readonly Member[], clock: Clock) {
    this.members = members;
    this.majority = Math.floor(members.length / 2) + 1;
    this.clock = clock;
    this.time = new QuorumTime(members.length, clock, () => this.#greet());
  }

  /**
   * Rejects with a `NotExecutedError` when no majority answers: a caller that asked for a change has to know better.
   * `requestOf`: null for a member that is not asked. `isEnough`: no need to wait for further answers.
   */
  async ask(
    requestOf: (member: number) => Request | null,
    isEnough: (replies: readonly MemberReply[]) => boolean,
  ): Promise<Round<MemberReply>> {
    if (this.#id === null) await this.#greet();
    const id = this.#id ?? '';
    const round = this.#round(async (member, index) => {
      const request = requestOf(index);
      const seat = this.#seats[index];
      if (request === null || seat === undefined) throw await this.#greeted(index);
      const sentMs = this.clock.monotonicMs();
      const reply = await member.ask(request, { ...seat, quorum: id });
      if ('isRefused' in reply) {
        this.#seats[index] = undefined;
        const error = await this.#greeted(index);
        // Sent twice, it may have been executed before the server was restarted.
        throw reply.isOnce ? error : new Error(error.message, { cause: error });
      }
      this.time.note(index, sentMs, this.clock.monotonicMs(), reply.time);
      return reply;
    }, isEnough);
    // The servers may have been enrolled under another id.
    return await round.catch((error: unknown) => {
      this.#id = null;
      throw error;
    });
  }

  /** Nothing was sent to a member whose place or time is not known. It is asked for now, for the next request. */
  async #greeted(index: number): Promise<NotExecutedError> {
    try {
      const { quorum, reason } = await this.#greetOne(index);
      if (quorum === null) return new NotExecutedError(reason, 'while-waiting');
      return new NotExecutedError('it has just joined', 'at-once');
    } catch (error) {
      return notExecuted(error) ?? new NotExecutedError(messageOf(error), 'while-waiting', error);
    }
  }

  /** What a majority of the members answers to anything else. */
  async collect<T>(send: (member: number) => Promise<T>): Promise<readonly T[]> {
    const { answers } = await this.#round(
      (_, index) => send(index),
      () => false,
    );
    return answers.map(({ reply }) => reply);
  }

  /** Rejects when a single answer takes too long. */
  inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.clock.timer(ANSWERS_MS_MAX, () => reject(new Error('it did not answer in time')));
      answer.finally(() => timer.cancel()).then(resolve, reject);
    });
  }

  /** Learns the time of a majority, and the id of the quorum. */
  async #greet(): Promise<void> {
    const { answers } = await this.#round(
      async (_, index) => {
        const { quorum, reason } = await this.#greetOne(index);
        if (quorum === null) throw new NotExecutedError(reason, 'while-waiting');
        return quorum;
      },
      (ids) => this.#commonId(ids) !== null,
    );
    const id = this.#commonId(answers.map(({ reply }) => reply));
    if (id === null) {
      const text = 'The servers belong to different quorums: pass those that were enrolled together.';
      throw new NotExecutedError(text, 'never');
    }
    this.#id = id;
  }

  #commonId(ids: readonly string[]): string | null {
    return ids.find((id) => ids.filter((other) => other === id).length >= this.majority) ?? null;
  }

  /** One greeting at a time, unless it takes long; a member that hangs bounds the number of its requests. */
  #greetOne(index: number): Promise<Greeting> {
    const sentMs = this.clock.monotonicMs();
    const shared = this.#greetings.get(index);
    if (shared && sentMs - shared.sentMs < GREETING_MS) return shared.answer;
    const answer = this.#greetNow(index).finally(() => {
      if (this.#greetings.get(index)?.answer === answer) this.#greetings.delete(index);
    });
    this.#greetings.set(index, { sentMs, answer });
    return answer;
  }

  /** A server that is passed twice has one vote, and one that was enrolled with more or fewer servers has none. */
  async #greetNow(index: number): Promise<Greeting> {
    const sentMs = this.clock.monotonicMs();
    const greeting = await (this.members[index] as Member).greet();
    const { quorum, place, size } = greeting;
    if (quorum === null) return greeting;
    const given = this.members.length;
    if (size !== given) throw new NotExecutedError(otherSize(size, given), 'never');
    const twin = this.#seats.findIndex((seat) => seat?.quorum === quorum && seat.place === place);
    if (twin !== -1 && twin !== index) {
      throw new NotExecutedError(
        `it is the same as ${this.members[twin]?.name}: pass each server once`,
        'never',
      );
    }
    this.#seats[index] = { quorum, place, size: given };
    this.time.note(index, sentMs, this.clock.monotonicMs(), greeting.time);
    return greeting;
  }

  #round<T>(
    send: (member: Member, index: number) => Promise<T>,
    isEnough: (replies: readonly T[]) => boolean,
  ): Promise<Round<T>> {
    const { members, clock, majority } = this;
    const answers: { member: number; reply: T }[] = [];
    const errors = new Map<number, unknown>();
    const sinceMs = clock.monotonicMs();
    return new Promise((resolve, reject) => {
      const end = (isLate = false): void => {
        timer.cancel();
        if (answers.length < majority) {
          const silent = isLate ? members.length - answers.length - errors.size : 0;
          reject(this.#noMajority(silent, errors));
          return;
        }
        const others = members.length - answers.length;
        const certain = [...errors.values()].filter((error) => error instanceof NotExecutedError);
        resolve({ answers: [...answers], isCertain: certain.length === others });
      };
      let timer = clock.timer(ANSWERS_MS_MAX, () => end(true));
      timer.keepAlive(false);
      const onSettled = (): void => {
        // Without a majority of answers, or of members left to answer, there is nothing to wait for.
        const isOver =
          answers.length + errors.size === members.length || members.length - errors.size < majority;
        if (isOver || isEnough(answers.map(({ reply }) => reply))) end();
        else if (answers.length === majority) {
          timer.cancel();
          timer = clock.timer(Math.max(REST_MS_MIN, clock.monotonicMs() - sinceMs), () => end(true));
          timer.keepAlive(false);
        }
      };
      members.forEach((member, index) => {
        send(member, index).then(
          (reply) => {
            answers.push({ member: index, reply });
            onSettled();
          },
          (error: unknown) => {
            errors.set(index, error);
            onSettled();
          },
        );
      });
    });
  }

  /** Which members cannot be used, and why. `silent`: how many have not answered in time. */
  #noMajority(silent: number, errors: ReadonlyMap<number, unknown>): NotExecutedError {
    const byReason = groupedBy([...errors], ([, error]) => messageOf(error));
    const whys = [...byReason].map(
      ([reason, failed]) => `${failed.map(([index]) => this.members[index]?.name).join(', ')}: ${reason}`,
    );
    if (silent > 0) whys.push(`${silent} did not answer in time`);
    const causes = [...errors.values()];
    const retries = causes.map((error) =>
      error instanceof NotExecutedError ? error.retry : 'while-waiting',
    );
    const isFinal = silent === 0 && retries.every((retry) => retry === 'never');
    return new NotExecutedError(
      `${errors.size + silent} of ${this.members.length} servers of the quorum cannot be used now, and ${this.majority} are needed. ${whys.join('; ')}.`,
      isFinal ? 'never' : retries.includes('at-once') ? 'at-once' : 'while-waiting',
      causes[0],
    );
  }
}
