/**
 * A granted hold: how long it is certain, and its renewal. Its deadline counts by both clocks.
 *
 * 1. A reply makes the hold certain until a deadline, counted from before the answered attempt was sent (F2), by what the
 *    reply grants and never by the ttl asked for: a repeated grant may be nearly over (F26).
 * 2. A renewal is sent when two thirds of the ttl are left, and repeated until it is answered. A renewal that fails is
 *    jeopardy, never loss and never an unhandled rejection (F7, F8).
 * 3. The hold is lost when the store says so, or at the deadline, whether or not any reply ever comes (F3, P14). The
 *    deadline is over when either clock says so: a suspended machine stops the monotonic one (F1, F11). It is also lost at
 *    the lease's `maxHold`.
 *
 * A hold outlives the lease on it when it passes to the next waiter of this process.
 */
import type { Moment } from '../clock.js';
import type { Granted, Renewed, Reply } from '../protocol/commands.js';
import { DRIFT_MS, DRIFT_SHARE, TOKEN_BLOCK } from '../protocol/constants.js';
import { type LossReason, UnsupportedError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import { isExclusive } from '../queue/request.js';
import { RetriedCommand, type RetryListener } from '../store-client/retried-command.js';
import type { StoreClient } from '../store-client/store-client.js';
import type { Task } from '../timer-queue.js';
import type { ClockWatch } from './clock-watch.js';
import type { Events } from './events.js';
import { type LeaseRequest, renewalTtlMs } from './lease-request.js';

/** Renewals begin when this share of the ttl is left, or a little earlier, so that many share a batch. */
const LEFT_SHARE = 2 / 3;
const TOGETHER_SHARE = 1 / 30;

/** Why a lease was lost, for programs and in a sentence. */
export interface Loss {
  readonly reason: LossReason;
  readonly message: string;
}

const DEADLINE: Loss = { reason: 'deadline', message: 'its time ran out before a renewal was answered' };
const LATE_RENEWAL: Loss = { reason: 'deadline', message: 'its renewal was answered too late' };
const MAX_HOLD: Loss = { reason: 'max-hold', message: 'it was held for as long as its `maxHold` allows' };
const EXPIRED: Loss = { reason: 'expired', message: 'the store says that it has expired' };
const REPLACED: Loss = {
  reason: 'replaced',
  message: 'the store no longer knows it, though its time is not over: its record was changed or deleted',
};

export function evictedBy(reason: string | null): Loss {
  return { reason: 'evicted', message: reason === null ? 'it was evicted' : `it was evicted: ${reason}` };
}

/** The lease on a hold. */
export interface HoldUser {
  readonly token: number;
  /** Changes its state now, and emits nothing yet. */
  noteLoss(loss: Loss): void;
  /** A release is on its way to the store. */
  onReleased(released: Promise<void>): void;
  /** Emits the loss, and aborts the lease's signal. */
  tellLoss(): void;
}

/** Keeps the holds of this process, releases them and passes them on. */
export interface HoldOwner {
  readonly client: StoreClient;
  readonly events: Events;
  readonly clockWatch: ClockWatch;
  /** The lease ended: the hold passes to the next waiter of this process, or is released. */
  leave(hold: Hold, handOver: boolean, minHoldMs?: number): Promise<void>;
  /** A hold without a lease was renewed: pass it on, or release it. */
  onRenewed(hold: Hold): void;
  onSetApart(hold: Hold): void;
  /** The hold is lost, or continues in another process. */
  drop(hold: Hold): void;
}

/** An error means that the store refuses the wanted ttl. */
type RenewalOutcome = 'renewed' | 'lost' | UnsupportedError;
type RenewalCallback = (outcome: RenewalOutcome) => void;

const NO_CALLBACKS: readonly RenewalCallback[] = [];

export class Hold implements Task, RetryListener {
  index = -1;
  readonly id: HoldId;
  readonly owner: HoldOwner;
  readonly client: StoreClient;
  readonly request: LeaseRequest;
  user: HoldUser | null = null;
  /** The next hold of this process on the same key. Written by the owner alone. */
  next: Hold | null = null;
  /** When it was claimed. */
  readonly sinceMs: number;
  /** When its lease began, by the store's clock. */
  acquiredAt: number;
  /** By the store's clock. */
  expiresAt: number;
  /** Since when this process knows that other processes wait; null while none does. */
  othersSinceMs: number | null = null;
  /** An eviction was announced: nothing is handed over until a renewal sent afterwards has been answered (F29). */
  suspect = false;
  /** About to be handed off: a renewal would bind the hold to this process again. */
  leaving = false;
  ended = false;
  /** Whether the last attempt to renew went unanswered, and why. */
  inJeopardy = false;
  failure: unknown;
  /** Renewed with another ttl, being handed off, or adopted: not what other waiters of this process want (F29). */
  isApart = false;
  /** The token of the next lease on it, above that of the last. */
  nextToken: number;
  /** The last moment at which it is certain, by each clock. */
  #deadlineMs: number;
  #deadlineWallMs: number;
  /** The end of the lease's `maxHold`, by each clock; null for a lease without one. */
  #limit: Moment | null = null;
  #tokenLast: number;
  #renewal: RetriedCommand | null = null;
  #callbacks: readonly RenewalCallback[] = NO_CALLBACKS;
  /** The ttl of the next renewal, wanted while another was on its way. */
  #wantedTtlMs: number | null = null;

  constructor(owner: HoldOwner, id: HoldId, request: LeaseRequest, reply: Granted, sent: Moment) {
    this.owner = owner;
    this.client = owner.client;
    this.id = id;
    this.request = request;
    this.sinceMs = sent.monotonicMs;
    this.acquiredAt = reply.acquiredAt;
    this.expiresAt = reply.expiresAt;
    const certainMs = certainMsOf(reply);
    this.#deadlineMs = sent.monotonicMs + certainMs;
    this.#deadlineWallMs = sent.wallMs + certainMs;
    this.nextToken = reply.token;
    this.#tokenLast = reply.tokenLast;
    if (reply.othersWait) this.noteOthers(true, sent.monotonicMs);
    owner.clockWatch.holds += 1;
    if (owner.clockWatch.index === -1) owner.clockWatch.start();
    this.client.timers.schedule(this, this.#nextMs());
  }

  get remainingMs(): number {
    if (this.ended) return 0;
    const certainMs = this.#leftMs(this.#deadlineMs, this.#deadlineWallMs);
    const limit = this.#limit;
    if (limit === null) return Math.max(0, certainMs);
    return Math.max(0, Math.min(certainMs, this.#leftMs(limit.monotonicMs, limit.wallMs)));
  }

  /** Until a moment, by the clock that reaches it first. */
  #leftMs(monotonicMs: number, wallMs: number): number {
    const { clock } = this.client;
    return Math.min(monotonicMs - clock.monotonicMs(), wallMs - clock.wallMs());
  }

  /** Limits the new lease to this time from now. Null: no limit, or the lease has ended. */
  limitTo(maxHoldMs: number | null): void {
    const { clock, timers } = this.client;
    this.#limit =
      maxHoldMs === null
        ? null
        : { monotonicMs: clock.monotonicMs() + maxHoldMs, wallMs: clock.wallMs() + maxHoldMs };
    timers.schedule(this, this.#nextMs());
  }

  /** How long the store may keep it. After a renewal with another ttl, maybe longer than the ttl. */
  get lifeMs(): number {
    const { ttlMs } = this.request;
    return this.isApart ? Math.max(ttlMs, this.expiresAt - this.client.storeNow()) : ttlMs;
  }

  /** From now on no other waiter of this process gets it: waiters claim at the store. */
  setApart(): void {
    if (this.isApart) return;
    this.isApart = true;
    this.owner.onSetApart(this);
  }

  /** An announced eviction may have ended this hold: a renewal finds out. */
  suspectEviction(): void {
    this.suspect = true;
    this.renew(renewalTtlMs(this.request));
  }

  get tokensLeft(): number {
    return this.#tokenLast - this.nextToken + 1;
  }

  /** The token of the last lease on it. Undefined if others may have tokens that were reserved since its grant. */
  get tokenUsed(): number | undefined {
    return isExclusive(this.request) && !this.isApart ? this.nextToken - 1 : undefined;
  }

  /** `sentMs`: when the answered command was sent. Wake-ups after that moment count more than the answer. */
  noteOthers(othersWait: boolean, sentMs: number): void {
    if (othersWait) this.othersSinceMs ??= this.client.clock.monotonicMs();
    else if (this.othersSinceMs !== null && sentMs >= this.othersSinceMs) this.othersSinceMs = null;
  }

  get isRenewing(): boolean {
    return this.#renewal !== null;
  }

  /** Wants a renewal that is sent from now on. */
  renew(ttlMs: number, callback?: RenewalCallback): void {
    if (callback) this.#callbacks = [...this.#callbacks, callback];
    if (this.#renewal) this.#wantedTtlMs = Math.max(ttlMs, this.#wantedTtlMs ?? 0);
    else this.#send(ttlMs);
  }

  /** The clocks went apart: by one of them the hold may be over, or end before its timer is due. */
  check(): void {
    if (this.ended) return;
    const { remainingMs } = this;
    if (remainingMs === 0) this.loseAtEnd();
    else this.dueWithin(this.#dueInMs(remainingMs));
  }

  dueWithin(ms: number): void {
    const { timers, clock } = this.client;
    timers.schedule(this, Math.min(timers.dueMs(this), clock.monotonicMs() + ms));
  }

  onDue(): void {
    const { remainingMs } = this;
    if (remainingMs === 0) {
      this.loseAtEnd();
      return;
    }
    const { timers, clock } = this.client;
    const isTime = clock.monotonicMs() >= this.#renewMs() || this.#dueInMs(remainingMs) === 0;
    if (isTime && this.#mayRenew) this.#send(this.request.ttlMs);
    timers.schedule(this, Math.min(this.#nextMs(), clock.monotonicMs() + this.#dueInMs(remainingMs)));
  }

  /** Counts by the clock that is ahead. The planned time is monotonic, and may come after the end by the wall clock. */
  #dueInMs(remainingMs: number): number {
    return this.#mayRenew ? Math.max(0, remainingMs - this.request.ttlMs * LEFT_SHARE) : remainingMs;
  }

  /** All holds with the same ttl share a grid of times, so that thousands of renewals are a few batches. */
  #renewMs(): number {
    const { ttlMs } = this.request;
    const gridMs = ttlMs * TOGETHER_SHARE;
    return Math.floor((this.#deadlineMs - ttlMs * LEFT_SHARE) / gridMs) * gridMs;
  }

  /** False once the hold is certain until the end of its `maxHold`. */
  get #renewsItself(): boolean {
    return this.request.renew && (this.#limit === null || this.#deadlineMs < this.#limit.monotonicMs);
  }

  get #mayRenew(): boolean {
    return this.#renewal === null && !this.leaving && this.#renewsItself;
  }

  #nextMs(): number {
    const endMs = this.#limit ? Math.min(this.#deadlineMs, this.#limit.monotonicMs) : this.#deadlineMs;
    return this.#mayRenew ? Math.min(this.#renewMs(), endMs) : endMs;
  }

  #send(ttlMs: number): void {
    const { key } = this.request;
    const block = isExclusive(this.request) && !this.isApart && this.tokensLeft < TOKEN_BLOCK / 2;
    const command = { kind: 'renew', key, hold: this.id, ttlMs, block } as const;
    this.#renewal = new RetriedCommand(this.client, command, this.request.ttlMs, this, false);
  }

  onReply(reply: Reply, sent: Moment): void {
    this.#renewal = null;
    if (reply.kind !== 'renewed') {
      this.lose(this.#lossToldBy(reply), true);
    } else if (this.remainingMs === 0) {
      this.loseAtEnd(LATE_RENEWAL);
    } else {
      const plannedMs = this.#renewMs();
      this.#extend(reply, sent);
      this.#onRenewed(plannedMs);
    }
  }

  #lossToldBy(reply: Reply): Loss {
    if (reply.kind === 'lost' && reply.evicted) return evictedBy(reply.evicted.reason);
    if (reply.now >= this.expiresAt) return EXPIRED;
    return this.suspect ? evictedBy(null) : REPLACED;
  }

  /**
   * A reply to an older attempt never shortens what a newer one granted. Both clocks count: after a sleep of the machine the
   * end of a stretched lease is near by the wall clock, and far by the one that stood still.
   */
  #extend(reply: Renewed, sent: Moment): void {
    const certainMs = certainMsOf(reply);
    const deadlineMs = sent.monotonicMs + certainMs;
    const deadlineWallMs = sent.wallMs + certainMs;
    if (this.#leftMs(deadlineMs, deadlineWallMs) > this.#leftMs(this.#deadlineMs, this.#deadlineWallMs)) {
      this.#deadlineMs = deadlineMs;
      this.#deadlineWallMs = deadlineWallMs;
    }
    this.expiresAt = Math.max(this.expiresAt, reply.expiresAt);
    this.noteOthers(reply.othersWait, sent.monotonicMs);
    const { block } = reply;
    if (block && block.token >= this.nextToken) {
      this.nextToken = block.token;
      this.#tokenLast = block.tokenLast;
    }
  }

  #onRenewed(plannedMs: number): void {
    this.inJeopardy = false;
    this.failure = undefined;
    const wanted = this.#wantedTtlMs;
    this.#wantedTtlMs = null;
    if (wanted !== null) this.#send(wanted);
    else this.suspect = false;
    this.client.timers.schedule(this, this.#nextMs());
    const { user, request } = this;
    if (user) {
      const { token } = user;
      this.owner.events.emit('renewed', request, () => ({
        token,
        remainingMs: this.remainingMs,
        lateMs: Math.max(0, this.client.clock.monotonicMs() - plannedMs),
      }));
    }
    if (wanted !== null) return;
    this.#settle('renewed');
    if (this.user === null && !this.ended) this.owner.onRenewed(this);
  }

  onUnknown(cause: unknown, { command }: RetriedCommand): void {
    const isStretch = command.kind === 'renew' && command.ttlMs > this.request.ttlMs;
    if (isStretch && cause instanceof UnsupportedError) {
      this.#onStretchRefused(cause);
      return;
    }
    this.inJeopardy = true;
    this.failure = cause;
    const { user, request } = this;
    if (this.remainingMs === 0) {
      this.loseAtEnd();
    } else if (user) {
      const { token } = user;
      this.owner.events.emit('jeopardy', request, () => ({ token, remainingMs: this.remainingMs, cause }));
    }
  }

  /** The hold goes back to its own ttl: repeating the refused renewal would block the others until the deadline. */
  #onStretchRefused(error: UnsupportedError): void {
    this.#renewal?.stop();
    this.#renewal = null;
    const isWanted = this.#wantedTtlMs !== null;
    this.#wantedTtlMs = null;
    if (isWanted) this.#send(renewalTtlMs(this.request));
    this.client.timers.schedule(this, this.#nextMs());
    this.#settle(error);
  }

  #settle(outcome: RenewalOutcome): void {
    const callbacks = this.#callbacks;
    this.#callbacks = NO_CALLBACKS;
    for (const callback of callbacks) callback(outcome);
  }

  /** The deadline, or the lease's `maxHold`, has passed. */
  loseAtEnd(loss = DEADLINE): void {
    const { clock } = this.client;
    const limit = this.#limit;
    const isLimit = limit && (clock.monotonicMs() >= limit.monotonicMs || clock.wallMs() >= limit.wallMs);
    this.lose(isLimit ? MAX_HOLD : loss);
  }

  /** The hold is over without a release. The lease's state changes first; then store and user learn of it. */
  lose(loss: Loss, toldByStore = false): void {
    if (this.ended) return;
    const { user } = this;
    user?.noteLoss(loss);
    this.end();
    const { key, name, ttlMs, minHoldMs } = this.request;
    const command = { kind: 'release', key, hold: this.id, minHoldMs } as const;
    // The store is available, so a later `release()` of the lease waits for this release.
    if (loss === MAX_HOLD) user?.onReleased(this.client.releases.release(command, name, ttlMs, this.lifeMs));
    else if (!toldByStore) this.client.releases.withdraw(key, this.id, ttlMs, this.lifeMs);
    this.owner.drop(this);
    user?.tellLoss();
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.owner.clockWatch.holds -= 1;
    this.client.timers.cancel(this);
    this.#renewal?.stop();
    this.#renewal = null;
    if (this.#callbacks.length > 0) this.#settle('lost');
  }
}

const certainMsOf = ({ now, expiresAt }: { readonly now: number; readonly expiresAt: number }): number =>
  (expiresAt - now) * (1 - DRIFT_SHARE) - DRIFT_MS;
