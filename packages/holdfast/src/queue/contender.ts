/**
 * Claims a key at the store for the waiters of one queue.
 *
 * 1. An exclusive request, or one waiter alone, gets one claim. Shared requests get up to sixteen claims at a time, all
 *    but the last without queueing. Grants go to the waiter that waits longest.
 * 2. The last claim, the anchor, keeps the place in the store's queue. It is sent again when woken, when something before
 *    it may be over, or by the safety poll.
 * 3. When retired, it withdraws every claim that the store may still grant, except with a caller's own hold.
 */
import type { Moment } from '../clock.js';
import type { Busy, Granted, Reply } from '../protocol/commands.js';
import { POLL_MS, POLL_MS_MAX } from '../protocol/constants.js';
import { type HoldfastError, NotExecutedError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import { type Refusal, RetriedCommand, type RetryListener } from '../store-client/retried-command.js';
import type { StoreClient } from '../store-client/store-client.js';
import { acquireError } from '../store-client/store-error.js';
import type { Task } from '../timer-queue.js';
import { areAlike, claimOf, isExclusive, type Request } from './request.js';

export const TOGETHER_MAX = 16;
/** Waiters further back claim a little later, so that the first in the queue finds the key free. */
const STAGGER_MS = 10;
/** This many waiters in front poll as often as the store can prove a death: the first may not know its place yet. */
const NEAR_PLACES = 8;
/** Without wake-ups: full jitter between these, the upper bound doubling. Behind the first eight it is twice as high. */
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 500;
/**
 * The pause of a waiter for which a full queue had no place: random, between this and twice as long. The lock goes to the
 * queue, so polling more often gains nothing; and the queue moves slower without wake-ups.
 */
const OUTSIDE_MS = 500;
const OUTSIDE_UNWOKEN_MS = 1_500;
/**
 * These pauses, and the pauses far back in a queue without wake-ups, last at least this many times as long as the last
 * answer took. In the queue they have a limit, so that the waiter keeps its place.
 */
const ANSWERS_PER_PAUSE = 4;
const FAR_MS_MAX = 1_500;

/** The queue that a contender claims for. */
export interface ContenderOwner {
  readonly client: StoreClient;
  readonly newHold: (request: Request) => HoldId;
  /** The number of waiters, up to `most`, that claims of this request would serve. */
  countAlike(request: Request, most: number): number;
  /** A claim was granted. Returns whether claiming goes on. */
  onGranted(from: Contender, hold: HoldId, reply: Granted, sent: Moment): boolean;
  onBusy(from: Contender, reply: Busy): void;
  onUnknown(from: Contender, cause: unknown): void;
  /** The store ended new claims twice in a row; the next one follows after a pause. */
  onWithdrawnAgain(): void;
  /** The caller's own hold had ended already. */
  onEnded(from: Contender): void;
  onRefused(from: Contender, error: HoldfastError): void;
}

export class Contender implements Task, RetryListener {
  index = -1;
  /** The request of a waiter that it claims for. */
  request: Request;
  /** The last reply, unless it is outdated. */
  answer: Busy | null = null;
  /** Why the last attempt was not executed, unless that is outdated. */
  refusal: NotExecutedError | null = null;
  /** Whether the first claim is on its way, and nothing is known yet. */
  isFirstClaim = false;
  /** Whether it has a place in the store's queue. */
  isQueued = false;
  readonly #owner: ContenderOwner;
  readonly #isForOne: boolean;
  #extras: readonly RetriedCommand[] = [];
  #anchor: HoldId | null = null;
  #claim: RetriedCommand | null = null;
  /** Whether the store may still have a place in the queue for the anchor, or an unanswered attempt of it. */
  #leavesTraces = false;
  #isWoken = false;
  #backoffs = 0;
  #withdrawals = 0;
  #retired = false;

  /** `isForOne`: it claims for one waiter alone. */
  constructor(owner: ContenderOwner, request: Request, isForOne: boolean) {
    this.#owner = owner;
    this.request = request;
    this.#isForOne = isForOne;
  }

  get #queues(): boolean {
    return this.request.queue && this.request.waitMs > 0 && this.#owner.client.store.traits.queue;
  }

  serves(request: Request): boolean {
    return areAlike(request, this.request);
  }

  /** Whether a claim is on its way. */
  get isAsking(): boolean {
    return this.#claim?.open ?? false;
  }

  /** Whether the store may yet execute a claim that was given up. */
  get isInDoubt(): boolean {
    return (this.#claim?.unanswered ?? 0) > 0;
  }

  /** Starts at `fromMs`, or at once. */
  start(fromMs: number): void {
    const { clock, timers } = this.#owner.client;
    if (fromMs > 0 && fromMs > clock.monotonicMs()) timers.schedule(this, fromMs);
    else {
      this.isFirstClaim = true;
      this.#claimAll();
    }
  }

  /** A wake-up that comes while a claim is on its way is remembered: the claim may have been decided before it. */
  wake(): void {
    if (this.#claim?.open) this.#isWoken = true;
    else if (this.#anchor) this.onDue();
  }

  retire(): void {
    this.#retired = true;
    this.#owner.client.timers.cancel(this);
    for (const extra of this.#extras) {
      extra.stop();
      if (extra.unanswered > 0) this.#withdraw(holdOf(extra));
    }
    this.#extras = [];
    const claim = this.#claim;
    const isDoubtful = claim?.open === true && claim.unanswered > 0;
    claim?.stop();
    if (this.#anchor && (isDoubtful || this.#leavesTraces)) this.#withdraw(this.#anchor);
    this.#anchor = null;
  }

  #withdraw(hold: HoldId): void {
    const { key, ttlMs, hold: callersOwn } = this.request;
    if (callersOwn === null) this.#owner.client.releases.withdraw(key, hold, ttlMs);
  }

  onDue(): void {
    this.#owner.client.timers.cancel(this);
    if (this.#anchor) this.#claimAnchor(this.#anchor);
    else this.#claimAll();
  }

  /** All holds are new, and the anchor's number is the highest: a claim drops its process's places with lower ones. */
  #claimAll(): void {
    const { request } = this;
    this.#leavesTraces = false;
    this.isQueued = false;
    if (!this.#isForOne && !isExclusive(request)) this.#claimExtras();
    this.#anchor = request.hold ?? this.#owner.newHold(request);
    this.#claimAnchor(this.#anchor);
  }

  #claimExtras(): void {
    // Unanswered extras count, too.
    const count = this.#owner.countAlike(this.request, TOGETHER_MAX) - 1 - this.#extras.length;
    for (let extra = 0; extra < count; extra++) {
      this.#extras = [...this.#extras, this.#send(this.#owner.newHold(this.request), false)];
    }
  }

  onReply(reply: Reply, sent: Moment, from: RetriedCommand): void {
    this.refusal = null;
    this.isFirstClaim = false;
    if (from !== this.#claim) this.#onExtraReply(reply, sent, from);
    else if (reply.kind === 'granted') this.#onGranted(reply, sent);
    else if (reply.kind === 'busy') this.#onBusy(reply);
    else this.#onWithdrawn();
  }

  /** Only the anchor's refusal counts: it is sent last, and its place in the queue outlives the others. */
  onUnknown(cause: unknown, from: RetriedCommand): void {
    this.answer = null;
    this.isFirstClaim = false;
    const isRefused = cause instanceof NotExecutedError && cause.retry !== 'at-once';
    this.refusal = isRefused && from === this.#claim ? cause : null;
    this.#owner.onUnknown(this, cause);
  }

  onRefused(error: Refusal, from: RetriedCommand): void {
    const isDoubtful = from.unanswered > 0;
    if (from === this.#claim) this.#leavesTraces ||= isDoubtful;
    else if (isDoubtful) this.#withdraw(holdOf(from));
    this.#extras = this.#extras.filter((other) => other !== from);
    this.#owner.onRefused(this, acquireError(this.request.name, error));
  }

  #onExtraReply(reply: Reply, sent: Moment, from: RetriedCommand): void {
    const hold = holdOf(from);
    this.#extras = this.#extras.filter((other) => other !== from);
    if (reply.kind === 'granted') this.#owner.onGranted(this, hold, reply, sent);
    else if (from.unanswered > 0) this.#withdraw(hold);
  }

  #onGranted(reply: Granted, sent: Moment): void {
    const hold = this.#anchor;
    if (!hold) return;
    this.#anchor = null;
    if (this.#owner.onGranted(this, hold, reply, sent)) this.#claimAll();
  }

  #claimAnchor(hold: HoldId): void {
    this.#isWoken = false;
    this.#claim = this.#send(hold, this.#queues);
  }

  #send(hold: HoldId, queue: boolean): RetriedCommand {
    const { client } = this.#owner;
    const command = claimOf(this.request, hold, queue, client.wakes.inbox);
    return new RetriedCommand(client, command, this.request.ttlMs, this, true);
  }

  /** A new number is above every mark, so one new claim is enough. After a second `withdrawn`, pause. */
  #onWithdrawn(): void {
    this.#anchor = null;
    this.isQueued = false;
    if (this.request.hold !== null) {
      this.#owner.onEnded(this);
      return;
    }
    const { timers, clock } = this.#owner.client;
    this.#withdrawals += 1;
    if (this.#withdrawals === 1) this.#claimAll();
    else {
      timers.schedule(this, clock.monotonicMs() + BACKOFF_MS_MIN);
      this.#owner.onWithdrawnAgain();
    }
  }

  #onBusy(reply: Busy): void {
    this.#withdrawals = 0;
    this.answer = reply;
    this.isQueued = reply.position !== null;
    this.#leavesTraces ||= this.isQueued || (this.#claim?.unanswered ?? 0) > 0;
    this.#owner.onBusy(this, reply);
    if (this.#retired) return;
    if (this.#isWoken) {
      this.onDue();
      return;
    }
    const { clock, timers } = this.#owner.client;
    const nowMs = clock.monotonicMs();
    const tookMs = nowMs - (this.#claim?.monotonicMs ?? nowMs);
    timers.schedule(this, nowMs + this.#pauseMs(reply, tookMs));
  }

  #pauseMs({ position, freeInMs }: Busy, tookMs: number): number {
    const { clock, store, wakes } = this.#owner.client;
    if (position === null && this.#queues) {
      const leastMs = wakes.wakesWaiters() ? OUTSIDE_MS : OUTSIDE_UNWOKEN_MS;
      return Math.max(leastMs, ANSWERS_PER_PAUSE * tookMs) * (1 + clock.random());
    }
    const isNear = (position ?? 0) < NEAR_PLACES;
    const livenessMs = (isNear ? store.traits.livenessPollMs : null) ?? Number.POSITIVE_INFINITY;
    if (position !== null && wakes.wakesWaiters()) {
      const pollMs = Math.min(POLL_MS * (position + 1), POLL_MS_MAX);
      return Math.min(pollMs, livenessMs, freeInMs + 1 + position * STAGGER_MS);
    }
    this.#backoffs += 1;
    const isFar = position !== null && position >= NEAR_PLACES;
    const mostMs = Math.min(BACKOFF_MS_MIN * 2 ** this.#backoffs, BACKOFF_MS_MAX * (isFar ? 2 : 1));
    const pauseMs = BACKOFF_MS_MIN + clock.random() * (mostMs - BACKOFF_MS_MIN);
    // Waiters in front must not miss their turn, so only waiters far back pause for longer.
    if (isFar) return Math.max(pauseMs, Math.min(ANSWERS_PER_PAUSE * tookMs, FAR_MS_MAX));
    return Math.min(pauseMs, livenessMs, freeInMs + 1 + clock.random() * STAGGER_MS);
  }
}

function holdOf({ command }: RetriedCommand): HoldId {
  if (command.kind === 'evict') throw new TypeError('An eviction has no hold.');
  return command.hold;
}
