/** One caller that waits in a queue of this process, until it is granted, answered, or gives up. Settles once. */

import { type Linked, LinkedList } from '../linked-list.js';
import type { Busy, HolderView } from '../protocol/commands.js';
import { ATTEMPT_MS, ATTEMPT_MS_MIN } from '../protocol/constants.js';
import type { HoldfastError } from '../protocol/errors.js';
import type { StoreClient } from '../store-client/store-client.js';
import { acquireError } from '../store-client/store-error.js';
import type { Task } from '../timer-queue.js';
import type { AbortListeners } from './abort-listeners.js';
import type { Contender } from './contender.js';
import type { Request } from './request.js';

/** However short the wait, the store has this long to give a first answer. */
const ANSWER_MS = 2_000;

/** How waiting ended without a grant. */
export type NotGranted =
  | {
      readonly kind: 'busy';
      readonly key: string;
      readonly holders: readonly HolderView[];
      /** Another lease of this process holds the key. */
      readonly heldHere: boolean;
      /** The store's last answer, where it was asked. */
      readonly answer: Busy | null;
    }
  | { readonly kind: 'failed'; readonly error: HoldfastError }
  | { readonly kind: 'aborted'; readonly reason: unknown }
  /** The caller's own hold was released, evicted or has expired before. */
  | { readonly kind: 'ended' }
  /** A later request with the same hold waits in its place. */
  | { readonly kind: 'superseded' }
  /** The queue was closed. */
  | { readonly kind: 'closed' };

/** Whether the first claim is answered, or given up, before the waiter's own time is over: it needs no timer yet. */
export const isPatient = ({ waitMs, ttlMs }: Request): boolean => (waitMs > 0 ? waitMs : ttlMs) > ATTEMPT_MS;

/** How a request ended: with a grant, or without one. */
export type Outcome<G> = { readonly kind: 'granted'; readonly grant: G } | NotGranted;

/** The queue that a waiter waits in. */
export interface WaiterOwner<W> {
  readonly client: StoreClient;
  readonly aborts: AbortListeners;
  /** The waiter waited as long as it wanted: answer it if an answer, or the reason why there is none, is known. */
  onOverdue(waiter: W): void;
  /** Whether a claim is on its way whose answer tells this waiter, too, what the key is. */
  isAskingFor(waiter: W): boolean;
  /** The waiter settled by itself, aborted or unanswered. */
  onGone(waiter: W): void;
  onNotGranted(waiter: W, outcome: NotGranted): void;
}

/** Until the promise is made. One for all: a function per waiter would be allocated for nothing. */
const unresolved = (): void => undefined;

/** One request in the queue of its key. */
export class Waiter<R extends Request, G> implements Task, Linked<Waiter<R, G>> {
  index = -1;
  readonly request: R;
  readonly sinceMs: number;
  readonly outcome: Promise<Outcome<G>>;
  /** It has waited as long as it wanted to, or never wanted to: the next answer is final. */
  isOverdue: boolean;
  isContended = false;
  /** The store's last answer to anybody here; null while the last thing known is that the store is silent. */
  answer: Busy | null = null;
  /** The contender that claims with the caller's own hold. */
  contender: Contender | null = null;
  previous: Waiter<R, G> | null = null;
  next: Waiter<R, G> | null = null;
  isListed = false;
  readonly #owner: WaiterOwner<Waiter<R, G>>;
  #settled = false;
  #awaitsClaim = false;
  #resolve: (outcome: Outcome<G>) => void = unresolved;
  #failure: unknown;

  constructor(owner: WaiterOwner<Waiter<R, G>>, request: R) {
    this.#owner = owner;
    this.request = request;
    this.sinceMs = owner.client.clock.monotonicMs();
    this.isOverdue = request.waitMs <= 0;
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (request.signal) owner.aborts.add(request.signal, this);
  }

  /** Sets the waiter's own timer, once. */
  arm(): void {
    if (this.index !== -1 || this.#settled) return;
    const dueMs = this.isOverdue ? this.#answerByMs() : this.sinceMs + this.request.waitMs;
    this.#owner.client.timers.schedule(this, dueMs, true);
  }

  #answerByMs(): number {
    const { waitMs, ttlMs } = this.request;
    return this.sinceMs + Math.max(waitMs, Math.min(ANSWER_MS, Math.max(ttlMs, ATTEMPT_MS_MIN)));
  }

  /**
   * `isLocal`: known without the store. Local handover and known answers lead from one outcome to the next, and the event
   * loop has to turn in between. Commands let it turn themselves.
   */
  settle(outcome: Outcome<G>, isLocal = true): void {
    if (this.#settled) return;
    this.#settled = true;
    const { timers } = this.#owner.client;
    if (this.index !== -1) timers.cancel(this);
    if (this.request.signal) this.#owner.aborts.remove(this.request.signal, this);
    if (isLocal && timers.isBlockedAfterShortSteps()) this.#resolveAfterTurn(outcome);
    else this.#resolve(outcome);
    if (outcome.kind !== 'granted') this.#owner.onNotGranted(this, outcome);
  }

  /** Apart from `settle`, which would allocate this function every time. */
  #resolveAfterTurn(outcome: Outcome<G>): void {
    this.#owner.client.timers.afterTurn(() => this.#resolve(outcome));
  }

  /** The store's silence, or its last error: the cause to name if no answer comes at all. */
  noteFailure(cause: unknown): void {
    this.#failure = cause;
    this.answer = null;
  }

  onDue(): void {
    if (!this.isOverdue) {
      this.isOverdue = true;
      this.#owner.onOverdue(this);
      if (this.#settled) return;
    }
    const { clock, timers } = this.#owner.client;
    const nowMs = clock.monotonicMs();
    const answerByMs = this.#answerByMs();
    if (nowMs < answerByMs) {
      timers.schedule(this, answerByMs, true);
      return;
    }
    // A claim of its own that is on its way decides, for as long as a first attempt is awaited. From now on: after a pause of
    // the process its reply may have come already. So may that of a claim for others, which is not awaited otherwise.
    const stoodStill = nowMs - answerByMs >= ATTEMPT_MS_MIN;
    const isAsking = stoodStill ? this.#owner.isAskingFor(this) : this.contender?.isAsking;
    if (isAsking && !this.#awaitsClaim) {
      this.#awaitsClaim = true;
      timers.schedule(this, nowMs + ATTEMPT_MS, true);
      return;
    }
    this.fail(this.#failure);
    this.#owner.onGone(this);
  }

  /** The store did not answer, or could not be asked. */
  fail(cause: unknown): void {
    this.settle({ kind: 'failed', error: acquireError(this.request.name, cause) });
  }

  onAbort(): void {
    this.settle({ kind: 'aborted', reason: this.request.signal?.reason });
    this.#owner.onGone(this);
  }
}

/** Waiters in the order in which they came. */
export class WaiterList<R extends Request, G> extends LinkedList<Waiter<R, G>> {
  /** How many of them take the next answer as final. */
  overdue = 0;

  override add(waiter: Waiter<R, G>): void {
    super.add(waiter);
    if (waiter.isOverdue) this.overdue += 1;
  }

  override replace(old: Waiter<R, G>, waiter: Waiter<R, G>): void {
    super.replace(old, waiter);
    if (waiter.isOverdue) this.overdue += 1;
  }

  override remove(waiter: Waiter<R, G>): void {
    if (waiter.isListed && waiter.isOverdue) this.overdue -= 1;
    super.remove(waiter);
  }
}
