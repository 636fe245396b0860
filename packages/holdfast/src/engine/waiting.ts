/**
 * The one contender of this process at the store for one key. An exclusive request claims alone; shared ones claim up
 * to sixteen at a time, all but the last without queueing, and grants go to whoever stands first. The last, the
 * anchor, keeps the place in line: it asks again when hinted, when something before it may be over, or by the poll.
 */
import type { Busy, Claim, Reply } from '../protocol/commands.js';
import { POLL_MS, POLL_MS_MAX } from '../protocol/constants.js';
import { NotExecutedError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Appointment } from './agenda.js';
import { Conversation, type Refusal, type Speaker } from './conversation.js';
import { acquireError } from './patience.js';
import { areAlike, isExclusive, type Request } from './request.js';
import type { Turnstile } from './turnstile.js';
import type { Moment } from './validity.js';

const TOGETHER_MAX = 16;
/** Those further back ask a little later: the first in line should find the key free. */
const STAGGER_MS = 10;
/** This many in front ask as often as the store can prove a death: the one that is first now may not know it yet. */
const NEAR_PLACES = 8;
/** Without hints: full jitter between these, the upper bound doubling. Behind the first eight it is twice as high. */
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 500;
/**
 * Kept out of a full line: a random pause between this and twice as long. The lock goes to the line, so hurry gains nothing;
 * and the line moves slower where no hints come.
 */
const OUTSIDE_MS = 500;
const OUTSIDE_UNCALLED_MS = 1_500;
/**
 * These pauses, and those at the back of a line without hints, are at least this many times as long as the answer took. In line
 * they are bounded: a place has to be kept.
 */
const ANSWERS_PER_PAUSE = 4;
const FAR_MS_MAX = 1_500;

export class Contender implements Appointment, Speaker {
  index = -1;
  /** The last answer, while it is the last thing known. */
  heard: Busy | null = null;
  /** Why the store cannot be asked, while that is the last thing known and nothing was executed. */
  refusal: NotExecutedError | null = null;
  readonly #turnstile: Turnstile;
  readonly #request: Request;
  readonly #queues: boolean;
  #extras: readonly Conversation[] = [];
  #anchor: HoldId | null = null;
  #talk: Conversation | null = null;
  /** The store may still have something of the anchor: a place in line, or an attempt that nobody answered. */
  #leavesTraces = false;
  #hinted = false;
  #backoffs = 0;
  #withdrawals = 0;
  #retired = false;

  constructor(turnstile: Turnstile, request: Request) {
    this.#turnstile = turnstile;
    this.#request = request;
    const { core } = turnstile;
    this.#queues = request.queue && request.waitMs > 0 && core.store.traits.queue;
  }

  serves(request: Request): boolean {
    return areAlike(request, this.#request);
  }

  /** Not before `fromMs`. */
  start(fromMs: number): void {
    const { core } = this.#turnstile;
    if (fromMs > 0 && fromMs > core.clock.monotonicMs()) core.agenda.schedule(this, fromMs);
    else this.#claimAnew();
  }

  /** A hint that arrives while a claim is in flight is remembered: the claim may have been decided before it. */
  hint(): void {
    if (this.#talk?.open) this.#hinted = true;
    else if (this.#anchor) this.onDue();
  }

  /** Stops contending and takes back whatever the store may still do with what was said. */
  retire(): void {
    this.#retired = true;
    const { core } = this.#turnstile;
    core.agenda.cancel(this);
    for (const talk of this.#extras) {
      talk.stop();
      if (talk.unanswered > 0) this.#withdraw(holdOf(talk));
    }
    this.#extras = [];
    const isDoubtful = this.#talk?.open === true && this.#talk.unanswered > 0;
    this.#talk?.stop();
    if (this.#anchor && (isDoubtful || this.#leavesTraces)) this.#withdraw(this.#anchor);
    this.#anchor = null;
  }

  #withdraw(hold: HoldId): void {
    this.#turnstile.core.withdraw(this.#request.key, hold, this.#request.ttlMs);
  }

  onDue(): void {
    const { core } = this.#turnstile;
    core.agenda.cancel(this);
    if (this.#anchor) this.#claimAnchor(this.#anchor);
    else this.#claimAnew();
  }

  /** New numbers, the anchor's highest: a claim drops what its process's lower numbers had in line. */
  #claimAnew(): void {
    const { core } = this.#turnstile;
    this.#leavesTraces = false;
    // Those of before that are not answered yet count too.
    for (let extra = this.#countTogether() - 1 - this.#extras.length; extra > 0; extra--) {
      this.#extras = [...this.#extras, this.#claim(core.newHold(), false)];
    }
    this.#anchor = core.newHold();
    this.#claimAnchor(this.#anchor);
  }

  #countTogether(): number {
    if (isExclusive(this.#request)) return 1;
    let count = 0;
    for (const ticket of this.#turnstile.tickets) {
      if (count === TOGETHER_MAX || !this.serves(ticket.request)) break;
      count += 1;
    }
    return Math.max(count, 1);
  }

  onReply(reply: Reply, sent: Moment, talk: Conversation): void {
    this.refusal = null;
    if (talk === this.#talk) this.#onAnchorReply(reply, sent);
    else this.#onExtraReply(reply, sent, talk);
  }

  /** The anchor speaks for all: it is sent last, and its place in line outlives the others. */
  onUnknown(cause: unknown, talk: Conversation): void {
    this.heard = null;
    const isRefused = cause instanceof NotExecutedError && cause.retry !== 'at-once';
    this.refusal = isRefused && talk === this.#talk ? cause : null;
    this.#turnstile.heardNothing(cause);
  }

  onRefused(error: Refusal, talk: Conversation): void {
    const isDoubtful = talk.unanswered > 0;
    if (talk === this.#talk) this.#leavesTraces ||= isDoubtful;
    else if (isDoubtful) this.#withdraw(holdOf(talk));
    this.#extras = this.#extras.filter((other) => other !== talk);
    const isKnown = error instanceof NotExecutedError;
    this.#turnstile.refused(isKnown ? acquireError(this.#request.name, error) : error);
  }

  #onExtraReply(reply: Reply, sent: Moment, talk: Conversation): void {
    const hold = holdOf(talk);
    this.#extras = this.#extras.filter((other) => other !== talk);
    if (reply.kind === 'granted') this.#turnstile.admit(hold, this.#request, reply, sent);
    else if (talk.unanswered > 0) this.#withdraw(hold);
  }

  #onAnchorReply(reply: Reply, sent: Moment): void {
    const hold = this.#anchor;
    if (reply.kind === 'granted' && hold) {
      this.#anchor = null;
      this.#turnstile.admit(hold, this.#request, reply, sent);
      if (!this.#retired) this.#claimAnew();
    } else if (reply.kind === 'busy') {
      this.#withdrawals = 0;
      this.#onBusy(reply);
    } else {
      this.#onWithdrawn();
    }
  }

  #claimAnchor(hold: HoldId): void {
    this.#hinted = false;
    this.#talk = this.#claim(hold, this.#queues);
  }

  #claim(hold: HoldId, queue: boolean): Conversation {
    const { core } = this.#turnstile;
    const { key, owner, permits, capacity, ttlMs, metadata } = this.#request;
    const { inbox } = core;
    const command: Claim = {
      kind: 'claim',
      key,
      hold,
      owner,
      permits,
      capacity,
      ttlMs,
      queue,
      inbox,
      metadata,
    };
    return new Conversation(core, command, ttlMs, this);
  }

  /** A new number is above every mark, so once is enough; a store that says so again and again is not to be hurried. */
  #onWithdrawn(): void {
    const { agenda, clock } = this.#turnstile.core;
    this.#anchor = null;
    this.#withdrawals += 1;
    if (this.#withdrawals === 1) this.#claimAnew();
    else agenda.schedule(this, clock.monotonicMs() + BACKOFF_MS_MIN);
  }

  #onBusy(reply: Busy): void {
    const { core } = this.#turnstile;
    this.heard = reply;
    const unanswered = this.#talk?.unanswered ?? 0;
    this.#leavesTraces ||= reply.position !== null || unanswered > 0;
    this.#turnstile.heardBusy(reply);
    if (this.#retired) return;
    if (this.#hinted) {
      this.onDue();
      return;
    }
    const nowMs = core.clock.monotonicMs();
    const sinceMs = this.#talk?.sinceMs ?? nowMs;
    core.agenda.schedule(this, nowMs + this.#nextMs(reply, nowMs - sinceMs));
  }

  #nextMs({ position, freeInMs }: Busy, tookMs: number): number {
    const { core } = this.#turnstile;
    const { clock, store } = core;
    if (position === null && this.#queues) {
      const leastMs = core.callsWaiters() ? OUTSIDE_MS : OUTSIDE_UNCALLED_MS;
      return Math.max(leastMs, ANSWERS_PER_PAUSE * tookMs) * (1 + clock.random());
    }
    const { vigilMs } = store.traits;
    const vigil = vigilMs !== null && (position ?? 0) < NEAR_PLACES ? vigilMs : Number.POSITIVE_INFINITY;
    if (position !== null && core.callsWaiters()) {
      const pollMs = Math.min(POLL_MS * (position + 1), POLL_MS_MAX);
      return Math.min(pollMs, vigil, freeInMs + 1 + position * STAGGER_MS);
    }
    this.#backoffs += 1;
    const isFar = position !== null && position >= NEAR_PLACES;
    const mostMs = Math.min(BACKOFF_MS_MIN * 2 ** this.#backoffs, BACKOFF_MS_MAX * (isFar ? 2 : 1));
    const pauseMs = BACKOFF_MS_MIN + clock.random() * (mostMs - BACKOFF_MS_MIN);
    // Those in front must not come too late for their turn.
    if (isFar) return Math.max(pauseMs, Math.min(ANSWERS_PER_PAUSE * tookMs, FAR_MS_MAX));
    return Math.min(pauseMs, vigil, freeInMs + 1 + clock.random() * STAGGER_MS);
  }
}

function holdOf({ command }: Conversation): HoldId {
  if (command.kind === 'evict') throw new TypeError('An eviction is not about a hold.');
  return command.hold;
}
