/** Acquires for clients: at once for a request without a wait, otherwise through the queue of the key. */
import { UnsupportedError } from 'holdfast';
import {
  KeyQueue,
  KeyQueues,
  type Moment,
  type QueueOwner,
  type Request,
  type StoreClient,
  type Outcome as Waited,
  type Waiter,
} from 'holdfast/engine';
import type { Claim, Granted, HoldId, WaiterView } from 'holdfast/protocol';
import { monotonicMs, wallMs } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import { HoldEvents } from './hold-events.js';
import { holdText, newHold, SharedTexts } from './holds.js';
import { remainingOf, type ServiceClient } from './service-client.js';

export type Outcome =
  | Waited<Grant>
  /** The limit of waiting requests is reached. */
  | { readonly kind: 'full' };

export class RequestQueues extends KeyQueues<AcquireRequest, Grant, RequestQueue> {
  override readonly newHold = ({ minHoldMs }: Request): HoldId => newHold(minHoldMs);
  readonly holds: HoldEvents;
  /** The number of requests that wait here. */
  waiting = 0;
  readonly #events: ServiceEvents;
  readonly #waitersMax: number;
  readonly #texts = new SharedTexts();
  #isClosed = false;

  constructor(client: ServiceClient, events: ServiceEvents, waitersMax: number) {
    super(client);
    this.#events = events;
    this.holds = new HoldEvents(events);
    this.#waitersMax = waitersMax;
  }

  waitersHere(key: string): WaitersHere {
    return this.queues.get(key)?.waitersHere() ?? NO_WAITERS;
  }

  /** The request's signal aborts when the client goes away. Then its claim is withdrawn. */
  async acquire(request: AcquireRequest): Promise<Outcome> {
    const { key, waitMs, hold } = request;
    const sinceMs = monotonicMs();
    let outcome: Outcome;
    if (waitMs === 0) {
      outcome = await this.#askOnce(request);
      if (outcome.kind === 'busy') this.#events.emit('contended', { key });
    } else {
      // A client that already holds the lock gets its grant again, without waiting in the queue.
      const again = hold !== null && this.queues.has(key) ? await this.#askOnce(request) : null;
      outcome = again && again.kind !== 'busy' ? again : await this.#wait(request);
    }
    this.#tell(key, outcome, monotonicMs() - sinceMs);
    return outcome;
  }

  /** Ends all waiting, with the outcome `closed`. */
  close(): void {
    this.#isClosed = true;
    this.endWaiting({ kind: 'closed' });
  }

  async #wait(request: AcquireRequest): Promise<Outcome> {
    const { key } = request;
    if (this.#isClosed) return { kind: 'closed' };
    if (this.waiting >= this.#waitersMax) return { kind: 'full' };
    this.client.wakes.start();
    this.waiting += 1;
    try {
      const outcome = this.#queueOf(key).enter(request);
      this.#events.emit('touched', { key });
      return await outcome;
    } finally {
      this.waiting -= 1;
      this.#events.emit('touched', { key });
    }
  }

  #queueOf(key: string): RequestQueue {
    let queue = this.queues.get(key);
    if (!queue) {
      queue = new RequestQueue(this, key, this.#events);
      this.queues.set(key, queue);
    }
    return queue;
  }

  async #askOnce(request: AcquireRequest): Promise<Outcome> {
    const { key, hold, minHoldMs, principal } = request;
    if (!hold && minHoldMs === 0) {
      const outcome = await this.#claimOnce(request, this.#texts.next(principal, key));
      if (outcome) return outcome;
      // A later hold of the same text has ended, or a client has forged the end of one.
      this.#texts.forget(principal, key);
    }
    return (await this.#claimOnce(request, hold ?? this.newHold(request))) ?? { kind: 'ended' };
  }

  /** Null when a hold of this process text with the same or a higher number has ended. */
  async #claimOnce(request: AcquireRequest, hold: HoldId): Promise<Outcome | null> {
    const { key, owner, permits, capacity, ttlMs, metadata } = request;
    const what = { hold, owner, permits, capacity, ttlMs, metadata };
    const claim: Claim = { kind: 'claim', key, ...what, queue: false, inbox: null };
    try {
      const { reply, sent } = await this.client.ask(claim, key, 'acquire');
      if (reply.kind === 'busy')
        return { kind: 'busy', key, holders: reply.holders, heldHere: false, answer: reply };
      return reply.kind === 'granted' ? outcomeOf(this.client, request, hold, reply, sent) : null;
    } catch (error) {
      if (!(error instanceof UnsupportedError) && !request.hold)
        this.client.releases.withdraw(key, hold, ttlMs);
      throw error;
    }
  }

  #tell(key: string, outcome: Outcome, waitedMs: number): void {
    if (outcome.kind === 'granted') {
      this.holds.held(key, holdText(outcome.grant.hold));
      this.#events.emit('acquired', { key, waitedMs, token: outcome.grant.reply.token });
      this.#events.emit('touched', { key });
    } else if (outcome.kind === 'busy') this.#events.emit('refused', { key, waitedMs });
  }
}

export interface AcquireRequest extends Request {
  /** The principal that sent it. Holds made for it on one key may share a process text. */
  readonly principal: string;
  /** When it came, by the monotonic clock. */
  readonly sinceMs: number;
}

export interface Grant {
  readonly hold: HoldId;
  readonly reply: Granted;
  /** By the monotonic clock, before the attempt that was answered. */
  readonly sentMs: number;
}

/** Waiters of this process, in order: first those that are also in the store's queue, then those behind them. */
export interface WaitersHere {
  readonly inStore: readonly WaiterView[];
  readonly behind: readonly WaiterView[];
}

export const NO_WAITERS: WaitersHere = { inStore: [], behind: [] };

export class RequestQueue extends KeyQueue<AcquireRequest, Grant> {
  /** Requests differ in owner, ttl and metadata, and each has a place of its own in the store's queue. */
  protected override readonly sharesClaims = false;
  readonly #events: ServiceEvents;
  /** The arrivals by the store's clock, as they were first shown: the estimate changes with every reply. */
  readonly #since = new WeakMap<AcquireRequest, number>();

  constructor(owner: QueueOwner<AcquireRequest, Grant>, key: string, events: ServiceEvents) {
    super(owner, key);
    this.#events = events;
  }

  waitersHere(): WaitersHere {
    const inStore: WaiterView[] = [];
    const behind: WaiterView[] = [];
    for (const waiter of this.waiters)
      (this.isQueuedAtStore(waiter) ? inStore : behind).push(this.#viewOf(waiter.request));
    return { inStore, behind };
  }

  #viewOf(request: AcquireRequest): WaiterView {
    const { owner, permits, capacity } = request;
    return { owner, permits, capacity, since: this.#sinceOf(request), woken: false };
  }

  /** Never later than the store's own view of the waiter. Before the store's first reply, by this machine's clock. */
  #sinceOf(request: AcquireRequest): number {
    const { storeAheadMs, roundTripMs } = this.client;
    if (storeAheadMs === 0) return Math.round(wallMs() - (monotonicMs() - request.sinceMs));
    const since = this.#since.get(request) ?? Math.floor(request.sinceMs + storeAheadMs - roundTripMs);
    this.#since.set(request, since);
    return since;
  }

  protected override grant(
    waiter: Waiter<AcquireRequest, Grant>,
    hold: HoldId,
    reply: Granted,
    sent: Moment,
  ): void {
    this.waiters.remove(waiter);
    waiter.settle(outcomeOf(this.client, waiter.request, hold, reply, sent), false);
  }

  protected override onContended(): void {
    this.#events.emit('contended', { key: this.key });
  }
}

/** P15: a grant that has expired when its reply arrives, because the store or this process stood still, is void. */
function outcomeOf(
  { releases }: StoreClient,
  { key, hold: own, ttlMs }: AcquireRequest,
  hold: HoldId,
  reply: Granted,
  { monotonicMs: sentMs }: Moment,
): Waited<Grant> {
  if (remainingOf(reply, sentMs) > 0) return { kind: 'granted', grant: { hold, reply, sentMs } };
  if (!own) releases.withdraw(key, hold, ttlMs);
  return { kind: 'ended' };
}
