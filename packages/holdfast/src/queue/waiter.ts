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

/** The time that the store has for a first answer, even if the wait is shorter. */
const ANSWER_MS = 2_000;

/** How waiting ended without a grant. */
export type NotGranted =
  | {
      readonly kind: 'busy';
      readonly key: string;
      readonly holders: readonly HolderView[];
      /** Another lease of this process holds the key. */
      readonly heldHere: boolean;
      /** The store's last reply, if there was one. */
      readonly answer: Busy | null;
    }
  | { readonly kind: 'failed'; readonly error: HoldfastError }
  | { readonly kind: 'aborted'; readonly reason: unknown }
  /** The caller's own hold had been released or evicted, or had expired. */
  | { readonly kind: 'ended' }
  /** A later request with the same hold waits in its place. */
  | { readonly kind: 'superseded' }
  /** The queue was closed. */
  | { readonly kind: 'closed' };

/** Whether the first claim is answered or given up before the waiter's own time is over: then it needs no timer yet. */
export const isPatient = ({ waitMs, ttlMs }: Request): boolean => (waitMs > 0 ? waitMs : ttlMs) > ATTEMPT_MS;

/** How a request ended: with a grant, or without one. */
export type Outcome<G> = { readonly kind: 'granted'; readonly grant: G } | NotGranted;

/** The queue that a waiter waits in. */
export interface WaiterOwner<W> {
  readonly client: StoreClient;
  readonly aborts: AbortListeners;
  /** The waiter's time is over: the owner answers it if an answer, or the reason why there is none, is known. */
  onOverdue(waiter: W): void;
  /** Whether a claim is on its way whose reply also answers this waiter. */
  isAskingFor(waiter: W): boolean;
  /**
   * The waiter leaves by itself, because it was aborted or got no answer. It leaves the queue before it settles: otherwise a
   * listener that releases the lock would pass it to this waiter, and nothing would ever release that lease.
   */
  onGone(waiter: W, outcome: NotGranted): void;
  onNotGranted(waiter: W, outcome: NotGranted): void;
}

/** The placeholder until the promise is made. All waiters share it, to allocate no function per waiter. */
const unresolved = (): void => undefined;

/** One request in the queue of its key. */
export class Waiter<R extends Request, G> implements Task, Linked<Waiter<R, G>> {
  index = -1;
  readonly request: R;
  readonly sinceMs: number;
  readonly outcome: Promise<Outcome<G>>;
  /** Its time is over, or it does not wait at all: the next answer is final. */
  isOverdue: boolean;
  isContended = false;
  /** The store's last answer to any waiter here; null if the store has been silent since. */
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
   * `isLocal`: the outcome came without a command. Local handovers and known answers can follow each other without end, so
   * the event loop has to turn between them. Commands let it turn themselves.
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

  /** Not inside `settle`, which would then allocate this function every time. */
  #resolveAfterTurn(outcome: Outcome<G>): void {
    this.#owner.client.timers.afterTurn(() => this.#resolve(outcome));
  }

  /** Notes the store's silence or its last error: the cause to name if no answer comes at all. */
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
    // A claim of its own that is on its way decides, for as long as a first attempt is awaited. That time starts now:
    // after a pause of the process the reply may have come already. After such a pause the claim of another waiter is
    // awaited, too.
    const stoodStill = nowMs - answerByMs >= ATTEMPT_MS_MIN;
    const isAsking = stoodStill ? this.#owner.isAskingFor(this) : this.contender?.isAsking;
    if (isAsking && !this.#awaitsClaim) {
      this.#awaitsClaim = true;
      timers.schedule(this, nowMs + ATTEMPT_MS, true);
      return;
    }
    this.#owner.onGone(this, this.#failed(this.#failure));
  }

  /** The store did not answer, or could not be asked. */
  fail(cause: unknown): void {
    this.settle(this.#failed(cause));
  }

  #failed(cause: unknown): NotGranted {
    return { kind: 'failed', error: acquireError(this.request.name, cause) };
  }

  onAbort(): void {
    this.#owner.onGone(this, { kind: 'aborted', reason: this.request.signal?.reason });
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
