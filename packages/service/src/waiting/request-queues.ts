/** Acquires for clients: at once where nothing is waited for, through the queue of the key otherwise. */
import { UnsupportedError } from 'holdfast';
import { KeyQueues, type Request, type Outcome as Waited } from 'holdfast/engine';
import type { Claim, HoldId } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import type { HoldEvents } from './hold-events.js';
import { holdText, newHold } from './holds.js';
import {
  type AcquireRequest,
  type Grant,
  NO_WAITERS,
  RequestQueue,
  type WaitersHere,
} from './request-queue.js';
import { remainingOf, type ServiceClient } from './service-client.js';

export type Outcome =
  | Waited<Grant>
  /** As many wait here as may. */
  | { readonly kind: 'full' };

export class RequestQueues extends KeyQueues<AcquireRequest, Grant, RequestQueue> {
  override readonly newHold = ({ minHoldMs }: Request): HoldId => newHold(minHoldMs);
  /** How many requests wait here. */
  waiting = 0;
  readonly #client: ServiceClient;
  readonly #events: ServiceEvents;
  readonly #holds: HoldEvents;
  readonly #waitersMax: number;
  #isClosed = false;

  constructor(client: ServiceClient, events: ServiceEvents, holds: HoldEvents, waitersMax: number) {
    super(client);
    this.#client = client;
    this.#events = events;
    this.#holds = holds;
    this.#waitersMax = waitersMax;
  }

  waitersHere(key: string): WaitersHere {
    return this.queues.get(key)?.waitersHere() ?? NO_WAITERS;
  }

  /** The request's signal aborts when the client went away: then nothing of it stays. */
  async acquire(request: AcquireRequest): Promise<Outcome> {
    const { key, waitMs, hold } = request;
    const sinceMs = monotonicMs();
    let outcome: Outcome;
    if (waitMs === 0) {
      outcome = await this.#askOnce(request);
      if (outcome.kind === 'busy') this.#events.emit('contended', { key });
    } else {
      // A client that holds already gets its grant again, however long the queue is.
      const again = hold !== null && this.queues.has(key) ? await this.#askOnce(request) : null;
      outcome = again && again.kind !== 'busy' ? again : await this.#wait(request);
    }
    this.#tell(key, outcome, monotonicMs() - sinceMs);
    return outcome;
  }

  /** Tells everybody who waits that the service closes. */
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
    const { key, owner, permits, capacity, ttlMs, metadata } = request;
    const hold = request.hold ?? this.newHold(request);
    const what = { hold, owner, permits, capacity, ttlMs, metadata };
    const claim: Claim = { kind: 'claim', key, ...what, queue: false, inbox: null };
    try {
      const { reply, sent } = await this.#client.ask(claim, key, 'acquire');
      if (reply.kind === 'busy')
        return { kind: 'busy', key, holders: reply.holders, heldHere: false, answer: reply };
      if (reply.kind !== 'granted') return { kind: 'ended' };
      const sentMs = sent.monotonicMs;
      // P15: expired when it is heard of.
      const isOver = remainingOf(reply.expiresAt, reply.now, sentMs) === 0;
      if (isOver && !request.hold) this.client.withdraw(key, hold, ttlMs);
      return isOver ? { kind: 'ended' } : { kind: 'granted', grant: { hold, reply, sentMs } };
    } catch (error) {
      if (!(error instanceof UnsupportedError) && !request.hold) this.client.withdraw(key, hold, ttlMs);
      throw error;
    }
  }

  #tell(key: string, outcome: Outcome, waitedMs: number): void {
    if (outcome.kind === 'granted') {
      this.#holds.held(key, holdText(outcome.grant.hold));
      this.#events.emit('acquired', { key, waitedMs });
      this.#events.emit('touched', { key });
    } else if (outcome.kind === 'busy') this.#events.emit('refused', { key, waitedMs });
  }
}
