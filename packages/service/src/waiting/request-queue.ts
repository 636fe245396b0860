/** The requests that wait for one key. A grant becomes the answer to a request; nothing is held or renewed here. */
import { KeyQueue, type Moment, type QueueOwner, type Request, type Waiter } from 'holdfast/engine';
import type { Granted, HoldId, WaiterView } from 'holdfast/protocol';
import type { ServiceEvents } from '../service-events.js';
import { remainingOf } from './service-client.js';

export interface AcquireRequest extends Request {
  /** When it came, by the wall clock. */
  readonly since: number;
}

export interface Grant {
  readonly hold: HoldId;
  readonly reply: Granted;
  /** By the monotonic clock, before the attempt that was answered. */
  readonly sentMs: number;
}

/** Waiters of this process, in order: those whom the store's own queue shows too, and those behind them. */
export interface WaitersHere {
  readonly inStore: readonly WaiterView[];
  readonly behind: readonly WaiterView[];
}

export const NO_WAITERS: WaitersHere = { inStore: [], behind: [] };

export class RequestQueue extends KeyQueue<AcquireRequest, Grant> {
  /** Requests differ in owner, ttl and metadata, and each has a place of its own in the store's queue. */
  protected override readonly sharesClaims = false;
  readonly #events: ServiceEvents;

  constructor(owner: QueueOwner<AcquireRequest, Grant>, key: string, events: ServiceEvents) {
    super(owner, key);
    this.#events = events;
  }

  waitersHere(): WaitersHere {
    const inStore: WaiterView[] = [];
    const behind: WaiterView[] = [];
    for (const waiter of this.waiters)
      (this.isQueuedAtStore(waiter) ? inStore : behind).push(viewOf(waiter.request));
    return { inStore, behind };
  }

  /** P15: a grant that has expired when it is heard of, as the store or this process stood still, is nobody's. */
  protected override grant(
    waiter: Waiter<AcquireRequest, Grant>,
    hold: HoldId,
    reply: Granted,
    sent: Moment,
  ): void {
    this.waiters.remove(waiter);
    const sentMs = sent.monotonicMs;
    if (remainingOf(reply.expiresAt, reply.now, sentMs) > 0) {
      waiter.settle({ kind: 'granted', grant: { hold, reply, sentMs } }, false);
      return;
    }
    if (!waiter.request.hold) this.client.withdraw(this.key, hold, waiter.request.ttlMs);
    waiter.settle({ kind: 'ended' });
  }

  protected override onContended(): void {
    this.#events.emit('contended', { key: this.key });
  }
}

function viewOf({ owner, permits, capacity, since }: AcquireRequest): WaiterView {
  return { owner, permits, capacity, since, woken: false };
}
