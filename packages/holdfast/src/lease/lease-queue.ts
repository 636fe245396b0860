/**
 * The queue of one key, and the holds that this process has on it. While the process holds the key and can hand it over
 * to its own next waiter, nobody claims at the store.
 */
import type { LockEvents } from '../api.js';
import type { Moment } from '../clock.js';
import type { Granted, HolderView, Renewed, Why } from '../protocol/commands.js';
import { STAY_AWAY_MS, TOKEN_BLOCK } from '../protocol/constants.js';
import { type HoldId, sameHold } from '../protocol/state.js';
import { KeyQueue, type QueueOwner } from '../queue/key-queue.js';
import type { NotGranted, Waiter } from '../queue/waiter.js';
import type { ClockWatch } from './clock-watch.js';
import { callOf, type Events } from './events.js';
import type { HandedOff } from './handoff.js';
import { Hold, type HoldOwner, type Loss } from './hold.js';
import { HeldLease } from './lease.js';
import { type LeaseRequest, renewalTtlMs } from './lease-request.js';
import { canBeHandedOver, fitsNext, howToPass } from './local-handover.js';

/** What the queues of one process share. */
export interface LeaseQueueOwner extends QueueOwner<LeaseRequest, HeldLease> {
  readonly events: Events;
  readonly clockWatch: ClockWatch;
}

type LeaseWaiter = Waiter<LeaseRequest, HeldLease>;

const NO_HOLDS: readonly Hold[] = [];
const GRANTED_LATE: Loss = { reason: 'deadline', message: 'it was granted too late' };

export class LeaseQueue extends KeyQueue<LeaseRequest, HeldLease> implements HoldOwner {
  holds: readonly Hold[] = NO_HOLDS;
  readonly events: Events;
  readonly clockWatch: ClockWatch;
  /** The hold that passes from lease to lease within this process. */
  #passing: Hold | null = null;
  /** Since when it passes. */
  #passingSinceMs = 0;
  /** When an eviction was last announced: it may have ended a hold whose grant is still on its way. */
  #evictionMs = Number.NEGATIVE_INFINITY;

  constructor(owner: LeaseQueueOwner, key: string) {
    super(owner, key);
    this.events = owner.events;
    this.clockWatch = owner.clockWatch;
  }

  /** P15: a grant that comes too late is given back. */
  protected override grant(waiter: LeaseWaiter, id: HoldId, reply: Granted, sent: Moment): void {
    const hold = new Hold(this, id, waiter.request, reply, sent);
    this.#add(hold);
    if (sent.monotonicMs <= this.#evictionMs) this.#suspect(hold);
    if (canBeHandedOver(waiter.request)) {
      this.#passing = hold;
      this.#passingSinceMs = this.client.clock.monotonicMs();
    }
    if (hold.remainingMs > 0) {
      this.#begin(hold, waiter, reply.acquiredAt, false);
      if (this.waiters.first && this.events.has('waiting')) this.#tellWaiting();
    } else hold.loseAtEnd(GRANTED_LATE);
  }

  /** Callers that came before the claim was answered wait for the lease that it became. */
  #tellWaiting(): void {
    const holders = this.holdersHere() ?? [];
    for (const waiter of this.waiters) {
      if (holders.length === 0 || waiter.isOverdue || waiter.isContended || !waiter.isListed) continue;
      waiter.isContended = true;
      this.onContended(waiter, holders, null);
    }
  }

  /** An idle hold waits for its renewal, without a lease on it: not while others want it, or nobody here does. */
  protected override isServedHere(front: LeaseWaiter | null): boolean {
    const idle = this.#passing?.user === null ? this.#passing : null;
    if (idle && (!front || idle.othersSinceMs !== null || !fitsNext(idle, front.request))) {
      this.#end(idle);
      this.client.withdraw(this.key, idle.id, idle.request.ttlMs, idle.lifeMs);
    }
    return front !== null && this.#passing !== null && fitsNext(this.#passing, front.request);
  }

  protected override holdersHere(): readonly HolderView[] | null {
    const hold = this.#passing;
    if (!hold || hold.remainingMs === 0) return null;
    const { owner, permits, capacity, metadata } = hold.request;
    const { user, expiresAt } = hold;
    const acquiredAt = user ? hold.acquiredAt : this.client.storeNow();
    const token = user?.token ?? 0;
    return [{ owner, permits, capacity, metadata, token, acquiredAt, expiresAt, resting: false }];
  }

  protected override onContended(
    { request, sinceMs }: LeaseWaiter,
    holders: readonly HolderView[],
    position: number | null,
  ): void {
    const waitedMs = this.client.clock.monotonicMs() - sinceMs;
    this.events.emit('waiting', request, () => ({
      call: callOf(request),
      holders: holders.map(({ owner }) => owner),
      position,
      waitedMs,
    }));
  }

  override onNotGranted({ request, sinceMs }: LeaseWaiter, outcome: NotGranted): void {
    this.events.emit('not-acquired', request, () => ({
      call: callOf(request),
      reason: reasonOf(outcome, request),
      holders: outcome.kind === 'busy' ? outcome.holders.map(({ owner }) => owner) : [],
      waitedMs: this.client.clock.monotonicMs() - sinceMs,
      cause: causeOf(outcome),
    }));
  }

  override wake(why: Why): void {
    super.wake(why);
    if (why === 'evicted') this.#evictionMs = this.client.clock.monotonicMs();
    for (const hold of this.holds) {
      if (why === 'waiting') hold.noteOthers(true, this.client.clock.monotonicMs());
      if (why === 'evicted') this.#suspect(hold);
    }
    if (this.#passing?.user === null) this.advance();
  }

  leave(hold: Hold, handOver: boolean): Promise<void> {
    hold.user = null;
    if (hold.request.maxHoldMs !== Number.POSITIVE_INFINITY) hold.limitTo(null);
    if (handOver && this.waiters.first && this.#passOn(hold, true)) return Promise.resolve();
    this.#end(hold);
    const { name, minHoldMs, ttlMs } = hold.request;
    const lifeMs = hold.isApart ? hold.lifeMs : ttlMs;
    const released = this.client.release(this.key, name, hold.id, minHoldMs, ttlMs, lifeMs);
    this.advance();
    return released;
  }

  onRenewed(hold: Hold): void {
    if (this.#passOn(hold, false)) return;
    this.#end(hold);
    this.client.withdraw(this.key, hold.id, hold.request.ttlMs, hold.lifeMs);
    this.advance();
  }

  onLost(hold: Hold): void {
    this.#end(hold);
    this.advance();
  }

  onSetApart(): void {
    this.advance();
  }

  onHandedOff(hold: Hold): void {
    hold.user = null;
    this.#end(hold);
    this.advance();
  }

  has(id: HoldId): boolean {
    return this.holds.some((hold) => sameHold(hold.id, id));
  }

  /** A lease that began in another process goes on here. */
  adopt({ id, request, token, acquiredAt }: HandedOff, reply: Renewed, sent: Moment): HeldLease {
    const granted: Granted = { ...reply, kind: 'granted', token, tokenLast: token, acquiredAt };
    const hold = new Hold(this, id, request, granted, sent);
    this.#add(hold);
    hold.setApart();
    if (sent.monotonicMs <= this.#evictionMs) this.#suspect(hold);
    return new HeldLease(hold, acquiredAt, request.maxHoldMs - (reply.now - acquiredAt));
  }

  #suspect(hold: Hold): void {
    hold.suspect = true;
    hold.renew(renewalTtlMs(hold.request));
  }

  #begin(hold: Hold, waiter: LeaseWaiter, acquiredAt: number, handedOver: boolean): void {
    this.waiters.remove(waiter);
    const lease = new HeldLease(hold, acquiredAt);
    // Settled before any listener is told: a listener may abort the caller's signal.
    waiter.settle({ kind: 'granted', grant: lease }, handedOver);
    if (!this.events.has('acquired')) return;
    const { request, sinceMs } = waiter;
    const waitedMs = this.client.clock.monotonicMs() - sinceMs;
    const { token } = lease;
    this.events.emit('acquired', request, () => ({ call: callOf(request), token, waitedMs, handedOver }));
  }

  /** False when the hold has to go back to the store. */
  #passOn(hold: Hold, mayRenew: boolean): boolean {
    const next = this.waiters.first;
    if (!next || hold !== this.#passing) return false;
    const passing = howToPass(hold, next.request, this.#passingSinceMs);
    if (passing === 'yield' && !this.client.wakes.wakesWaiters()) {
      // Nothing else lets other processes have their turn.
      this.awayUntilMs = this.client.clock.monotonicMs() + STAY_AWAY_MS;
    }
    if (passing === 'yield' || passing === 'release' || (passing === 'renew' && !mayRenew)) return false;
    if (passing === 'now') this.#begin(hold, next, this.client.storeNow(), true);
    const wantsRenewal = passing === 'renew' || hold.tokensLeft < TOKEN_BLOCK / 2;
    if (wantsRenewal && !hold.isRenewing) hold.renew(hold.request.ttlMs);
    return true;
  }

  #add(hold: Hold): void {
    this.holds = this.isHeldHere ? [...this.holds, hold] : [hold];
    this.isHeldHere = true;
  }

  #end(hold: Hold): void {
    hold.end();
    const isLast = this.holds.length === 1 && this.holds[0] === hold;
    this.holds = isLast ? NO_HOLDS : this.holds.filter((other) => other !== hold);
    this.isHeldHere = this.holds.length > 0;
    if (this.#passing === hold) this.#passing = null;
  }
}

function reasonOf({ kind }: NotGranted, { waitMs }: LeaseRequest): LockEvents['not-acquired']['reason'] {
  if (kind === 'busy') return waitMs > 0 ? 'timed-out' : 'refused';
  return kind === 'aborted' ? 'aborted' : 'failed';
}

function causeOf(outcome: NotGranted): unknown {
  if (outcome.kind === 'failed') return outcome.error;
  return outcome.kind === 'aborted' ? outcome.reason : undefined;
}
