/**
 * The record of a key as a register that a majority of the members agrees on: single-decree consensus (Paxos), again for
 * every value, where the new value is computed from the one found (known as CASPaxos).
 *
 * 1. `prepare`: a majority promises a new ballot, and returns what it has accepted. The value of the highest accepted
 *    ballot is the current one. Where a majority has not accepted that same ballot, it is accepted again first.
 * 2. `accept`: the new value under that ballot. It is stored once a majority has accepted it. The same request promises
 *    the proposer's next ballot, so while nobody else uses the key, a write is step 2 alone.
 *
 * A ballot is used for one value only. A value that some members have accepted may still be chosen later by another
 * process that finds it, which may also have built on it already. So every value carries the ids of the last writes, its own
 * first, each with its time; and `changed` is reported only when no member can have accepted the value, or when a value was
 * chosen under a higher ballot whose ids show that it was not built on it. See `#resolve`.
 */
import { checkVersion, expendableAt, NotExecutedError, type State, type Wake } from '../../protocol/index.js';
import { TRIES_MAX, tooManyRaces } from '../compare-and-swap/contention.js';
import type { Found, Reading, Register, Written } from '../compare-and-swap/register.js';
import { type Ballot, compareBallots, counterOf, type MemberReply, type Prepare } from './member.js';
import type { Quorum } from './quorum.js';
import type { QuorumReading } from './quorum-time.js';

/** A ballot is used for this long: its messages are refused later. Longer than a renewal of the default ttl takes to come. */
const VALID_MS = 30_000;
/** Members keep a record this much longer than anything in it matters: longer than any message with a lower ballot is valid. */
const KEEP_MORE_MS = 3 * VALID_MS;
/** From the second try on, a pause of up to this long for each: two proposers would overtake each other for ever. */
const PAUSE_MS = 5;
/** How many ids of writes a value carries. When more have been made meanwhile, the outcome of a write stays unknown. */
const IDS_MAX = 8;
/** Ids of writes to one key have to differ, and nobody has to be kept from guessing them. */
const ID_MAX = Number.MAX_SAFE_INTEGER;
/** Where the time is not known, because this machine's clock was just set. */
const ANY_TIME: Reading = { earliest: 0, latest: Number.MAX_SAFE_INTEGER };

/** A ballot of this process, and until when each member takes it, by its own clock. Null: its clock is not known. */
interface OwnBallot {
  readonly ballot: Ballot;
  readonly untils: readonly (number | null)[];
  readonly madeMs: number;
}

/** A ballot that a majority has promised, with the record that the next value replaces. */
interface Ready {
  readonly own: OwnBallot;
  /** Until then, by the monotonic clock, some member may keep the replaced record, or one before it. */
  readonly keptUntilMs: number;
  isUsed: boolean;
}

export interface Version {
  /** '' for a key without a record. */
  readonly accepted: Ballot;
  readonly ready: Ready | null;
  /** Of the last writes, the latest first. */
  readonly ids: readonly string[];
}

/** `value`: the ids in one line, then the state as JSON; '' for no state. */
interface Value {
  readonly state: State | null;
  readonly ids: readonly string[];
  readonly value: string;
}

interface Base {
  readonly accepted: Ballot;
  readonly value: string;
}

const ABSENT: Found<Version> = { state: null, version: { accepted: '', ready: null, ids: [] }, lateMs: 0 };

export class QuorumRegister implements Register<Version> {
  readonly absent = ABSENT;
  readonly wake: (key: string, wakes: readonly Wake[]) => void;
  readonly #quorum: Quorum;
  readonly #proposer: number;
  #counter = 0;

  constructor(quorum: Quorum, wake: (key: string, wakes: readonly Wake[]) => void) {
    this.#quorum = quorum;
    this.#proposer = Math.floor(quorum.clock.random() * Number.MAX_SAFE_INTEGER);
    this.wake = wake;
  }

  read(key: string): Promise<Found<Version>> {
    return this.#find(key, 'free');
  }

  /** The current state. Promises nothing, so that it disturbs no writer; repairs only what is not certain. */
  async peek(key: string): Promise<State | null> {
    await this.#now();
    const { answers } = await this.#quorum.ask(
      () => ({ kind: 'peek', key }),
      (replies) => this.#agreed(replies) !== null,
    );
    const agreed = this.#agreed(answers.map(({ reply }) => reply));
    if (agreed) return decoded(agreed.value, key).state;
    return (await this.#find(key, 'always')).state;
  }

  /** Makes sure that a majority of the members that vote now has accepted the current value. */
  async acceptAgain(key: string): Promise<void> {
    await this.#find(key, 'always');
  }

  async write(key: string, next: State, seen: Found<Version>): Promise<Written<Version>> {
    let { ready } = seen.version;
    if (!ready || ready.isUsed || !this.#isValid(ready.own)) {
      const found = await this.#find(key, { accepted: seen.version.accepted });
      ready = found.version.ready;
      if (!ready || found.version.accepted !== seen.version.accepted) return { kind: 'changed', found };
    }
    ready.isUsed = true;
    const now = await this.#now();
    const { earliest, latest } = now.quorum ?? ANY_TIME;
    const { clock } = this.#quorum;
    const id = `${Math.floor(clock.random() * ID_MAX).toString(36)}.${latest.toString(36)}`;
    const ids = [id, ...seen.version.ids].slice(0, IDS_MAX);
    const value = `${ids.join(' ')}\n${JSON.stringify(next)}`;
    try {
      const outcome = await this.#accept(key, { state: next, ids, value }, ready, now);
      if (outcome === 'refused') return { kind: 'changed', found: null };
      if (outcome !== 'unsure') return { kind: 'written', version: outcome, lateMs: 0 };
      return await this.#resolve(key, ids, ready.own.ballot, earliest);
    } catch (error) {
      throw unknownOutcome(error);
    }
  }

  /**
   * Some members may have accepted the value, and others have not: makes sure that it was chosen, or never will be.
   * `sentAt`: no value that was built on this one has an earlier time.
   */
  async #resolve(
    key: string,
    [id, before]: readonly string[],
    ballot: Ballot,
    sentAt: number,
  ): Promise<Written<Version>> {
    const found = await this.#find(key, 'always', ballot);
    const { ids } = found.version;
    if (id !== undefined && ids.includes(id)) {
      // Another process may have built on it.
      return {
        kind: 'written',
        version: found.version,
        lateMs: 0,
        ...(found.state && { state: found.state }),
      };
    }
    const isWithout = before === undefined ? ids.length < IDS_MAX : ids.includes(before);
    if (isWithout || timeOf(ids.at(-1)) < sentAt) return { kind: 'changed', found };
    throw new Error(
      `Other processes changed the record of "${key}" many times before the outcome of a write was known.`,
    );
  }

  /**
   * The current value, which a majority has accepted; under a ballot above `overruled`, if given. With a ballot ready for
   * the next value where the members promised it.
   */
  async #find(key: string, first: Prepare['when'], overruled: Ballot = ''): Promise<Found<Version>> {
    let above = counterOf(overruled);
    let when = first;
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const own = await this.#ballotAbove(above);
      const prepared = await this.#prepare(key, own, when, overruled);
      if ('version' in prepared) return prepared;
      above = prepared.above;
      when = 'always';
      if (tries > 1) await this.#pause(Math.min(tries, 10) * PAUSE_MS);
    }
    throw new NotExecutedError(tooManyRaces(key).message, 'at-once');
  }

  async #prepare(
    key: string,
    own: OwnBallot,
    when: Prepare['when'],
    overruled: Ballot,
  ): Promise<Found<Version> | { readonly above: number }> {
    const { majority, clock } = this.#quorum;
    const { ballot, untils } = own;
    const { earliest } = this.#quorum.time.reading() ?? ANY_TIME;
    const keepMs = keepMsFrom(earliest, counterOf(ballot) / 1_000, 0);
    const isWanted = ({ accepted }: Base): boolean => typeof when === 'object' && when.accepted === accepted;
    /** The value found, and whether a majority promised the ballot and has accepted that value. */
    const evaluate = (replies: readonly MemberReply[]) => {
      const promises = replies.filter(({ isDone }) => isDone);
      const isPromised = promises.length >= majority;
      const base = isPromised ? highestOf(promises) : this.#agreed(replies);
      const count = replies.filter(({ accepted }) => accepted === base?.accepted).length;
      const isSettled =
        base !== null &&
        count >= majority &&
        (overruled === '' || compareBallots(base.accepted, overruled) > 0);
      return { isPromised, base, isSettled };
    };
    const { answers } = await this.#quorum.ask(
      (member) =>
        requestTo(untils[member], (until) => ({ kind: 'prepare', key, ballot, when, until, keepMs })),
      (replies) => {
        const { isPromised, base, isSettled } = evaluate(replies);
        return isSettled && base !== null && (isPromised || !isWanted(base));
      },
    );
    const replies = answers.map(({ reply }) => reply);
    const keptUntilMs = clock.monotonicMs() + Math.max(...replies.map(({ keptMs }) => keptMs));
    const above = Math.max(
      ...replies.flatMap(({ promised, accepted }) => [counterOf(promised), counterOf(accepted)]),
    );
    const { isPromised, base, isSettled } = evaluate(replies);
    if (!base) return { above };
    const { accepted } = base;
    const { state, ids } = decoded(base.value, key);
    const ready: Ready = { own, keptUntilMs, isUsed: false };
    if (isPromised && isSettled) return { state, version: { accepted, ready, ids }, lateMs: 0 };
    if (!isPromised) {
      // Another process has promised a higher ballot, or the lock is held: the value is certain all the same.
      const isKnown = isSettled && when !== 'always' && !isWanted(base);
      return isKnown ? { state, version: { accepted, ready: null, ids }, lateMs: 0 } : { above };
    }
    ready.isUsed = true;
    const now = await this.#now();
    const version = await this.#accept(key, { state, ids, value: base.value }, ready, now);
    if (typeof version === 'object') return { state, version, lateMs: 0 };
    return { above: Math.max(above, counterOf(ballot)) };
  }

  async #accept(
    key: string,
    { state, ids, value }: Value,
    { own, keptUntilMs }: Ready,
    now: QuorumReading,
  ): Promise<Version | 'refused' | 'unsure'> {
    const { majority, clock } = this.#quorum;
    const { ballot, untils } = own;
    const next = this.#tryBallotAbove(counterOf(ballot), now);
    const matters = Math.max(counterOf(next?.ballot ?? ballot) / 1_000, state ? expendableAt(state) : 0);
    const sentMs = clock.monotonicMs();
    const keepMs = keepMsFrom((now.quorum ?? ANY_TIME).earliest, matters, keptUntilMs - sentMs);
    const isFree = state === null || (state.holders.length === 0 && state.rests.length === 0);
    const request = { kind: 'accept', key, ballot, value, isFree, next: next?.ballot ?? '', keepMs } as const;
    const { answers, isCertain } = await this.#quorum.ask(
      (member) => requestTo(untils[member], (until) => ({ ...request, until })),
      (replies) => replies.filter(({ isDone }) => isDone).length >= majority,
    );
    if (answers.filter(({ reply }) => reply.isDone).length >= majority) {
      const ready = next && { own: next, keptUntilMs: sentMs + keepMs, isUsed: false };
      return { accepted: ballot, ready, ids };
    }
    // Sent twice, the value may have been accepted before others were.
    const isUntouched = answers.every(
      ({ reply }) => !reply.isDone && (reply.isOnce || compareBallots(reply.accepted, ballot) < 0),
    );
    return isCertain && isUntouched ? 'refused' : 'unsure';
  }

  #pause(msMax: number): Promise<void> {
    const { clock } = this.#quorum;
    return new Promise((resolve) => void clock.timer(clock.random() * msMax, resolve));
  }

  /** A value that a majority has accepted, or null: then a write is under way, or was left half done. */
  #agreed(replies: readonly MemberReply[]): Base | null {
    const isChosen = ({ accepted }: Base): boolean =>
      replies.filter((other) => other.accepted === accepted).length >= this.#quorum.majority;
    return replies.find(isChosen) ?? null;
  }

  #isValid({ madeMs }: OwnBallot): boolean {
    return this.#quorum.clock.monotonicMs() - madeMs < VALID_MS / 2;
  }

  /** The time is known, unless this machine's clock was just set. */
  async #now(): Promise<QuorumReading> {
    const { time } = this.#quorum;
    const now = time.now();
    if (now.quorum !== null) return now;
    await time.sample();
    return time.now();
  }

  async #ballotAbove(counter: number): Promise<OwnBallot> {
    const own = this.#tryBallotAbove(counter, await this.#now());
    if (own) return own;
    throw new NotExecutedError(
      "The time of the quorum is not known: this machine's clock was just set.",
      'at-once',
    );
  }

  /** Null while the time is not known. */
  #tryBallotAbove(counter: number, { quorum, members }: QuorumReading): OwnBallot | null {
    if (quorum === null) return null;
    const { clock } = this.#quorum;
    this.#counter = Math.max(this.#counter, counter, quorum.latest * 1_000) + 1;
    const untils = members.map((one) => (one === null ? null : one.latest + VALID_MS));
    return { ballot: `${this.#counter}.${this.#proposer}`, untils, madeMs: clock.monotonicMs() };
  }
}

/** How long members have to keep a record that matters until then by the clock of the quorum, and for this long. */
function keepMsFrom(earliest: number, until: number, atLeastMs: number): number {
  return Math.ceil(Math.max(until - earliest + KEEP_MORE_MS, atLeastMs));
}

/** When a write with this id began, at the latest. */
function timeOf(id: string | undefined): number {
  return Number.parseInt(id?.split('.')[1] ?? '', 36);
}

function requestTo<T>(until: number | null | undefined, make: (until: number) => T): T | null {
  return until === null || until === undefined ? null : make(until);
}

function highestOf(replies: readonly MemberReply[]): Base {
  return replies.reduce((best, one) => (compareBallots(one.accepted, best.accepted) > 0 ? one : best));
}

function decoded(value: string, key: string): Omit<Value, 'value'> {
  if (value === '') return { state: null, ids: [] };
  const end = value.indexOf('\n');
  const state = JSON.parse(value.slice(end + 1)) as State;
  checkVersion(state.version, key);
  return { state, ids: value.slice(0, end).split(' ') };
}

/** Some member may have accepted the value: unlike a `NotExecutedError`, this leaves it open. */
function unknownOutcome(error: unknown): unknown {
  return error instanceof NotExecutedError ? new Error(error.message, { cause: error }) : error;
}
