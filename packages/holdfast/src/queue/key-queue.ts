/**
 * The waiters of this process for one key, in order. Only the waiters in front claim at the store (F18, F19): the first,
 * and if it is shared (a reader, a permit of many) up to fifteen like it. A thousand waiters cost as much as one.
 *
 * The subclass makes a lease, or the answer to a request, from a grant.
 */
import type { Moment } from '../clock.js';
import type { Busy, Granted, HolderView, Why } from '../protocol/commands.js';
import type { HoldfastError } from '../protocol/errors.js';
import { type HoldId, sameHold } from '../protocol/state.js';
import type { StoreClient } from '../store-client/store-client.js';
import type { AbortListeners } from './abort-listeners.js';
import { Contender, type ContenderOwner, TOGETHER_MAX } from './contender.js';
import { areAlike, areShared, canInherit, isExclusive, type Request } from './request.js';
import { isPatient, type NotGranted, type Outcome, Waiter, WaiterList, type WaiterOwner } from './waiter.js';

/** The parts that the queues of one process share. */
export interface QueueOwner<R extends Request, G> {
  readonly client: StoreClient;
  readonly aborts: AbortListeners;
  readonly newHold: (request: Request) => HoldId;
  /** The queue has no waiter any more. */
  forget(queue: KeyQueue<R, G>): void;
}

/** The waiters of one key in this process, in order. Users of the engine extend it. */
export abstract class KeyQueue<R extends Request, G> implements ContenderOwner, WaiterOwner<Waiter<R, G>> {
  readonly key: string;
  readonly client: StoreClient;
  readonly aborts: AbortListeners;
  readonly newHold: (request: Request) => HoldId;
  protected readonly waiters = new WaiterList<R, G>();
  /** Whether one contender claims for all waiters without a hold of their own; otherwise each in front has its own. */
  protected readonly sharesClaims: boolean = true;
  /** No waiter here claims before this time. */
  protected awayUntilMs = 0;
  readonly #owner: QueueOwner<R, G>;
  /** Claims with holds made here. */
  #contender: Contender | null = null;

  constructor(owner: QueueOwner<R, G>, key: string) {
    this.#owner = owner;
    this.client = owner.client;
    this.aborts = owner.aborts;
    this.newHold = owner.newHold;
    this.key = key;
  }

  /** A claim was granted to this waiter: settles it, or gives the hold back. */
  protected abstract grant(waiter: Waiter<R, G>, hold: HoldId, reply: Granted, sent: Moment): void;

  /** Whether the waiter in front gets the key within this process, without a claim. */
  protected isServedHere(_front: Waiter<R, G> | null): boolean {
    return false;
  }

  /** The holders, if this process knows them although nobody here claims the key. */
  protected holdersHere(): readonly HolderView[] | null {
    return null;
  }

  /** Whether this process holds the key. */
  protected isHeldHere(): boolean {
    return false;
  }

  /** The waiter found the key taken; called once. `position`: its own place in the store's queue, if it has one. */
  protected onContended(
    _waiter: Waiter<R, G>,
    _holders: readonly HolderView[],
    _position: number | null,
  ): void {}

  onNotGranted(_waiter: Waiter<R, G>, _outcome: NotGranted): void {}

  enter(request: R): Promise<Outcome<G>> {
    const waiter = new Waiter<R, G>(this, request);
    if (request.signal?.aborted) {
      waiter.settle({ kind: 'aborted', reason: request.signal.reason });
      // The queue may have been made for this waiter alone, and then ends.
      this.advance();
      return waiter.outcome;
    }
    const before = request.hold && this.#find(request.hold);
    if (before) this.#supersede(before, waiter);
    else this.waiters.add(waiter);
    this.advance();
    const contender = waiter.contender ?? this.#contender;
    const isFirst = waiter === this.waiters.first && contender?.isFirstClaim === true;
    // The timeout of the first claim comes before the waiter's own, so most waiters never need a timer.
    if (!isFirst || !isPatient(request)) this.#waitOn(waiter);
    return waiter.outcome;
  }

  /** Answers if the answer is known already, or sets a timer. */
  #waitOn(waiter: Waiter<R, G>): void {
    if (waiter.isListed && !this.#answerKnown(waiter)) this.#failOverdue(waiter);
    waiter.arm();
  }

  #find(hold: HoldId): Waiter<R, G> | null {
    for (const waiter of this.waiters) {
      if (waiter.request.hold && sameHold(waiter.request.hold, hold)) return waiter;
    }
    return null;
  }

  #supersede(before: Waiter<R, G>, waiter: Waiter<R, G>): void {
    this.waiters.replace(before, waiter);
    waiter.contender = before.contender;
    before.contender = null;
    if (waiter.contender) waiter.contender.request = waiter.request;
    before.settle({ kind: 'superseded' });
  }

  wake(why: Why): void {
    if (why !== 'turn') return;
    this.#contender?.wake();
    for (const { contender } of this.waiters) contender?.wake();
  }

  /** Whether the store's queue shows this waiter. A claim with a hold made here stands for the first that it serves. */
  protected isQueuedAtStore(waiter: Waiter<R, G>): boolean {
    if (waiter.contender) return waiter.contender.isQueued;
    return this.#contender?.isQueued === true && waiter === this.#waiterFor(this.#contender);
  }

  /** Ends all waiting. */
  close(outcome: NotGranted): void {
    for (const waiter of this.waiters) this.#leave(waiter, outcome);
    this.advance();
  }

  #leave(waiter: Waiter<R, G>, outcome: Outcome<G>): void {
    this.#remove(waiter);
    waiter.settle(outcome);
  }

  /**
   * A waiter that leaves hands its place in the store's queue to the next one, if that asks for the same and has none. If
   * the next one has a place of its own, the place is given up: a waiter further back would overtake with it.
   */
  #remove(waiter: Waiter<R, G>): void {
    this.waiters.remove(waiter);
    const { contender, next } = waiter;
    waiter.contender = null;
    if (!contender) return;
    const isSettled = contender.isQueued && !contender.isAsking && !contender.isInDoubt;
    if (isSettled && next?.isListed && !next.contender && canInherit(waiter.request, next.request)) {
      next.contender = contender;
      contender.request = next.request;
    } else contender.retire();
  }

  onOverdue(waiter: Waiter<R, G>): void {
    this.waiters.overdue += 1;
    if (!this.#answerKnown(waiter)) this.#failOverdue(waiter);
    if (!waiter.isListed) this.advance();
  }

  isAskingFor(waiter: Waiter<R, G>): boolean {
    return this.#contenderBefore(waiter)?.isAsking ?? false;
  }

  onGone(waiter: Waiter<R, G>, outcome: NotGranted): void {
    this.#leave(waiter, outcome);
    this.advance();
  }

  countAlike(request: Request, most: number): number {
    let count = 0;
    for (const waiter of this.waiters) {
      if (count === most || !areAlike(request, waiter.request)) break;
      count += 1;
    }
    return Math.max(count, 1);
  }

  /** P15: a grant is given back if no waiter asks for the same as its claim any more. */
  onGranted(from: Contender, hold: HoldId, reply: Granted, sent: Moment): boolean {
    const { request } = from;
    const { first } = this.waiters;
    const waiter = first?.request === request ? first : this.#waiterFor(from);
    if (isExclusive(request) && from === this.#contender) this.#contender = null;
    if (waiter) {
      waiter.contender = null;
      this.grant(waiter, hold, reply, sent);
      // The grant came too late and was given back. The next claim's timeout may come after the waiter's own time.
      if (waiter.isListed) waiter.arm();
    } else if (request.hold === null) this.client.releases.withdraw(this.key, hold, request.ttlMs);
    this.advance();
    return from === this.#contender;
  }

  #waiterFor(from: Contender): Waiter<R, G> | null {
    for (const waiter of this.waiters) {
      if (waiter.contender === from) return waiter;
      if (from === this.#contender && waiter.request.hold === null) {
        return from.serves(waiter.request) ? waiter : null;
      }
    }
    return null;
  }

  onBusy(_from: Contender, reply: Busy): void {
    for (const waiter of this.waiters) {
      waiter.arm();
      waiter.answer = reply;
      this.#answerBusy(waiter, reply.holders, reply);
    }
    this.advance();
  }

  onUnknown(_from: Contender, cause: unknown): void {
    for (const waiter of this.waiters) {
      waiter.arm();
      waiter.noteFailure(cause);
      this.#failOverdue(waiter);
    }
    this.advance();
  }

  onWithdrawnAgain(): void {
    this.waiters.first?.arm();
  }

  onEnded(from: Contender): void {
    const waiter = this.#waiterFor(from);
    if (waiter) this.#leave(waiter, { kind: 'ended' });
    this.advance();
  }

  /** Waiters that ask for something else stay. */
  onRefused(from: Contender, error: HoldfastError): void {
    const isShared = from === this.#contender;
    from.retire();
    if (isShared) this.#contender = null;
    for (const waiter of this.waiters) {
      const isMeant = isShared ? from.serves(waiter.request) : waiter.contender === from;
      if (isMeant) this.#leave(waiter, { kind: 'failed', error });
    }
    this.advance();
  }

  /** Starts and retires contenders to match the waiters now in front. A queue without waiters ends. */
  advance(): void {
    const front = this.#front();
    if (this.#contender && !(front && this.#contender.serves(front.request))) {
      this.#contender.retire();
      this.#contender = null;
    }
    const isServedHere = this.isServedHere(front);
    if (!this.waiters.first) this.#owner.forget(this);
    else if (front && !this.#contender) {
      if (isServedHere) this.#answerOverdue(front);
      else this.#contender = this.#start(front.request, false);
    }
  }

  /** The first of the waiters in front that the shared contender claims for. The others in front claim for themselves. */
  #front(): Waiter<R, G> | null {
    const head = this.waiters.first;
    if (!head) return null;
    if (this.sharesClaims && head.request.hold === null && isExclusive(head.request)) return head;
    let front: Waiter<R, G> | null = null;
    let place = 0;
    for (const waiter of this.waiters) {
      const isInFront = waiter === head || areShared(head.request, waiter.request);
      if (!isInFront || place === TOGETHER_MAX) break;
      place += 1;
      if (this.sharesClaims && waiter.request.hold === null) front ??= waiter;
      else waiter.contender ??= this.#start(waiter.request, true);
    }
    return front;
  }

  #start(request: Request, isForOne: boolean): Contender {
    const contender = new Contender(this, request, isForOne);
    contender.start(this.awayUntilMs);
    return contender;
  }

  /** While this process holds the key, no contender claims it. Overdue waiters get this holder as their answer. */
  #answerOverdue(front: Waiter<R, G>): void {
    const holders = this.waiters.overdue > 0 ? this.holdersHere() : null;
    if (!holders) return;
    for (const waiter of this.waiters) if (waiter.isOverdue) this.#answerBusy(waiter, holders, null);
    if (this.waiters.first !== front) this.advance();
  }

  /** False while nothing is known. */
  #answerKnown(waiter: Waiter<R, G>): boolean {
    const contender = this.#contenderBefore(waiter);
    const answer = contender ? contender.answer : null;
    const holders = answer?.holders ?? (contender ? null : this.holdersHere());
    if (holders) this.#answerBusy(waiter, holders, answer);
    else if (waiter.isOverdue && waiter.answer)
      this.#answerBusy(waiter, waiter.answer.holders, waiter.answer);
    else return false;
    return true;
  }

  /** An overdue waiter leaves, unless its own hold may be granted yet. */
  #answerBusy(waiter: Waiter<R, G>, holders: readonly HolderView[], answer: Busy | null): void {
    if (!waiter.isListed) return;
    if (!waiter.isOverdue) {
      if (waiter.isContended) return;
      waiter.isContended = true;
      const isFirst = waiter.contender !== null || waiter === this.waiters.first;
      this.onContended(waiter, holders, isFirst && answer ? answer.position : null);
    } else if (waiter.contender?.isAsking) {
      // The claim on its way decides.
    } else if (waiter.request.hold && waiter.contender?.isInDoubt) {
      this.#failed(waiter, null);
    } else {
      const { name } = waiter.request;
      this.#leave(waiter, { kind: 'busy', key: name, holders, heldHere: this.isHeldHere(), answer });
    }
  }

  /** Fails an overdue waiter at once if the store cannot be asked now and nothing was executed. */
  #failOverdue(waiter: Waiter<R, G>): void {
    const contender = this.#contenderBefore(waiter);
    const refusal = contender && !contender.isInDoubt ? contender.refusal : null;
    if (refusal && waiter.isOverdue && waiter.isListed) this.#failed(waiter, refusal);
  }

  /** The contender whose answers show the key as this waiter would find it. */
  #contenderBefore(waiter: Waiter<R, G>): Contender | null {
    return waiter.contender ?? this.#contender ?? this.waiters.first?.contender ?? null;
  }

  #failed(waiter: Waiter<R, G>, cause: unknown): void {
    this.#remove(waiter);
    waiter.fail(cause);
  }
}
