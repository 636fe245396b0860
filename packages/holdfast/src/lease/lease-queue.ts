/**
 * The queue of one key, while callers of this process wait for it. While the process holds the key and can hand it over to
 * its own next waiter, no claim is sent to the store.
 */
import type { LockEvents } from '../api.js';
import type { Moment } from '../clock.js';
import type { Granted, HolderView, Why } from '../protocol/commands.js';
import { STAY_AWAY_MS, TOKEN_BLOCK } from '../protocol/constants.js';
import type { HoldId } from '../protocol/state.js';
import { holderInfo } from '../protocol/view.js';
import { KeyQueue, type QueueOwner } from '../queue/key-queue.js';
import type { NotGranted, Waiter } from '../queue/waiter.js';
import { CHANNELS, callOf, type Events } from './events.js';
import type { Hold, Loss } from './hold.js';
import { HeldLease } from './lease.js';
import type { LeaseRequest } from './lease-request.js';
import { canBeHandedOver, fitsNext, howToPass } from './local-handover.js';

/** The owner of the queues and the holds of one process. */
export interface LeaseQueueOwner extends QueueOwner<LeaseRequest, HeldLease> {
  readonly events: Events;
  /** The first hold of this process on the key; the others follow it. */
  firstHold(key: string): Hold | null;
  newHoldOf(id: HoldId, request: LeaseRequest, reply: Granted, sent: Moment): Hold;
  /** Releases a hold without a lease on it. */
  giveBack(hold: Hold): void;
  tellAcquired(lease: HeldLease, request: LeaseRequest, sinceMs: number, handedOver: boolean): void;
}

type LeaseWaiter = Waiter<LeaseRequest, HeldLease>;

const GRANTED_LATE: Loss = { reason: 'deadline', message: 'it was granted too late' };

export class LeaseQueue extends KeyQueue<LeaseRequest, HeldLease> {
  readonly #owner: LeaseQueueOwner;
  /** The hold that is handed over within this process, until it ends. */
  #lastPassing: Hold | null;
  /** When an eviction was last announced: it may have ended a hold whose grant is still on its way. */
  #evictionMs = Number.NEGATIVE_INFINITY;

  /** `first`: the first hold of this process on the key, if there is one. */
  constructor(owner: LeaseQueueOwner, key: string, first: Hold | null) {
    super(owner, key);
    this.#owner = owner;
    let hold = first;
    while (hold && (hold.isApart || !canBeHandedOver(hold.request))) hold = hold.next;
    this.#lastPassing = hold;
  }

  get #passing(): Hold | null {
    return this.#lastPassing?.ended === false ? this.#lastPassing : null;
  }

  /** P15: a grant that comes too late is given back. */
  protected override grant(waiter: LeaseWaiter, id: HoldId, reply: Granted, sent: Moment): void {
    const hold = this.#owner.newHoldOf(id, waiter.request, reply, sent);
    if (sent.monotonicMs <= this.#evictionMs) hold.suspectEviction();
    if (canBeHandedOver(waiter.request)) this.#lastPassing = hold;
    if (hold.remainingMs > 0) {
      this.#begin(hold, waiter, reply.acquiredAt, false);
      if (this.waiters.first && this.#owner.events.has(CHANNELS.waiting)) this.#tellWaiting();
    } else hold.loseAtEnd(GRANTED_LATE);
  }

  /** Emits `waiting` for callers that came before the claim was answered: they now wait for its lease. */
  #tellWaiting(): void {
    const holders = this.holdersHere() ?? [];
    for (const waiter of this.waiters) {
      if (holders.length === 0 || waiter.isOverdue || waiter.isContended || !waiter.isListed) continue;
      waiter.isContended = true;
      this.onContended(waiter, holders, null);
    }
  }

  /** A hold without a lease is kept only for its renewal, while a waiter here, but no other process, wants it. */
  protected override isServedHere(front: LeaseWaiter | null): boolean {
    const hold = this.#passing;
    if (!hold) return false;
    const fits = front !== null && fitsNext(hold, front.request);
    const isKept = hold.user !== null || (fits && hold.othersSinceMs === null);
    if (!isKept) this.#owner.giveBack(hold);
    return fits && isKept;
  }

  protected override isHeldHere(): boolean {
    return this.#owner.firstHold(this.key) !== null;
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
    this.#owner.events.emit('waiting', request, () => ({
      call: callOf(request),
      holders: holders.map(holderInfo),
      position,
      waitedMs,
    }));
  }

  override onNotGranted({ request, sinceMs }: LeaseWaiter, outcome: NotGranted): void {
    this.#owner.events.emit('not-acquired', request, () => ({
      call: callOf(request),
      reason: reasonOf(outcome, request),
      holders: outcome.kind === 'busy' ? outcome.holders.map(holderInfo) : [],
      waitedMs: this.client.clock.monotonicMs() - sinceMs,
      cause: causeOf(outcome),
    }));
  }

  override wake(why: Why): void {
    super.wake(why);
    if (why === 'evicted') this.#evictionMs = this.client.clock.monotonicMs();
    if (this.#passing?.user === null) this.advance();
  }

  #begin(hold: Hold, waiter: LeaseWaiter, acquiredAt: number, handedOver: boolean): void {
    this.waiters.remove(waiter);
    const lease = new HeldLease(hold, acquiredAt);
    // Settle before listeners run: a listener may abort the caller's signal.
    waiter.settle({ kind: 'granted', grant: lease }, handedOver);
    if (this.#owner.events.has(CHANNELS.acquired))
      this.#owner.tellAcquired(lease, waiter.request, waiter.sinceMs, handedOver);
  }

  /** Hands a hold without a lease over to the next waiter. False when it has to be released. */
  passOn(hold: Hold, mayRenew: boolean): boolean {
    const next = this.waiters.first;
    if (!next || hold !== this.#passing) return false;
    const passing = howToPass(hold, next.request);
    if (passing === 'yield' && !this.client.wakes.wakesWaiters()) {
      // Without wake-ups, only this pause lets other processes have their turn.
      this.awayUntilMs = this.client.clock.monotonicMs() + STAY_AWAY_MS;
    }
    if (passing === 'yield' || passing === 'release' || (passing === 'renew' && !mayRenew)) return false;
    if (passing === 'now') this.#begin(hold, next, this.client.storeNow(), true);
    const wantsRenewal = passing === 'renew' || hold.tokensLeft < TOKEN_BLOCK / 2;
    if (wantsRenewal && !hold.isRenewing) hold.renew(hold.request.ttlMs);
    const front = this.waiters.first;
    // The hold does not fit this waiter, which needs its place in the store's queue before later waiters do.
    if (front && !fitsNext(hold, front.request)) this.advance();
    return true;
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
