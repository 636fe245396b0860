/** All leases of one process on one store: acquiring, adopting, draining and closing. */
import type { Clock } from '../clock.js';
import type { Reply } from '../protocol/commands.js';
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Store } from '../protocol/store.js';
import { KeyQueues } from '../queue/key-queues.js';
import type { Outcome } from '../queue/waiter.js';
import { StoreClient } from '../store-client/store-client.js';
import { ClockWatch } from './clock-watch.js';
import { callOf, Events } from './events.js';
import type { HandedOff } from './handoff.js';
import { evictedBy } from './hold.js';
import { HeldLease } from './lease.js';
import { LeaseQueue, type LeaseQueueOwner } from './lease-queue.js';
import { type LeaseRequest, renewalTtlMs } from './lease-request.js';
import { checkNotNested, workContext } from './work-context.js';

export class Leases extends KeyQueues<LeaseRequest, HeldLease, LeaseQueue> implements LeaseQueueOwner {
  readonly events = new Events();
  /** Part of every hold id: unguessable. */
  readonly #process: string;
  readonly clockWatch: ClockWatch;
  isClosed = false;
  readonly #closing = new AbortController();
  /** Aborts when the locks begin to close: leases are still held, and drain. */
  readonly closing = this.#closing.signal;
  #holdNumber = 0;
  override readonly newHold = (): HoldId => ({ process: this.#process, number: ++this.#holdNumber });

  constructor(store: Store, clock: Clock) {
    super(new StoreClient(store, clock, true));
    this.#process = clock.randomId();
    this.clockWatch = new ClockWatch(this.client, () => this.#checkHolds());
  }

  acquire(request: LeaseRequest): Promise<Outcome<HeldLease>> {
    if (this.isClosed) throw closedError();
    request.signal?.throwIfAborted();
    if (request.waitMs > 0 && workContext.getStore()) checkNotNested(this.client.store, request);
    if (this.events.has('acquiring')) {
      this.events.emit('acquiring', request, () => ({ call: callOf(request) }));
    }
    if (!this.client.wakes.isStarted) this.client.wakes.start();
    return (this.queues.get(request.key) ?? this.#newQueue(request.key)).enter(request);
  }

  #newQueue(key: string): LeaseQueue {
    const queue = new LeaseQueue(this, key);
    this.queues.set(key, queue);
    return queue;
  }

  checkOpen(): void {
    if (this.isClosed) throw closedError();
  }

  #checkHolds(): void {
    for (const queue of this.all()) for (const hold of queue.holds) hold.check();
  }

  /** Every lease held here now, of all keys or of one. */
  held(key?: string): HeldLease[] {
    const queues = key === undefined ? this.all() : [this.queues.get(key)];
    return queues.flatMap((queue) =>
      (queue?.holds ?? []).flatMap(({ user }) => (user instanceof HeldLease && user.held ? user : [])),
    );
  }

  /**
   * Gives the leases of this moment `drainMs` to end, then revokes those still held: the user is told first, and the
   * store after. All are tried, whatever becomes of one of them; then the first failure is thrown.
   */
  async drain(drainMs: number, message: string): Promise<void> {
    const leases = this.held();
    if (drainMs > 0 && leases.length > 0) {
      const { timers, clock } = this.client;
      await new Promise<void>((resolve) => {
        const timer = timers.call(clock.monotonicMs() + drainMs, resolve);
        void Promise.all(leases.map((lease) => HeldLease.ended(lease))).then(() => {
          timers.cancel(timer);
          resolve();
        });
      });
    }
    for (const outcome of await Promise.allSettled(
      leases.map((lease) => HeldLease.revoke(lease, { reason: 'closed', message })),
    )) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
  }

  /**
   * Goes on with a lease that another process, or this one, handed off. A renewal with the hold's own id finds out
   * whether it is still there, and gives it a whole ttl: one round trip, and no command that a store has to know.
   *
   * Wake-ups for the hold still go to the inbox of the old process. So an adopted hold is never handed over in memory, and
   * learns of an eviction with its next renewal. Unanswered, it may be tried again: nothing is ended.
   */
  async adopt(handed: HandedOff): Promise<HeldLease> {
    this.checkOpen();
    const { id, request, token } = handed;
    const { key, name } = request;
    const command = { kind: 'renew', key, hold: id, ttlMs: renewalTtlMs(request), block: false } as const;
    const { reply, sent } = await this.client.ask(command, name, 'adoption');
    this.checkOpen();
    if (reply.kind !== 'renewed') throw goneError(name, token, reply);
    const queue = this.queues.get(key) ?? this.#newQueue(key);
    if (queue.has(id)) throw twiceError(name, token);
    const lease = queue.adopt(handed, reply, sent);
    lease.assertHeld();
    this.events.emit('adopted', request, () => ({ token, remainingMs: lease.remainingMs }));
    return lease;
  }

  /** Refuses calls from now on, ends all waiting, and tells those who have to stop by themselves. */
  refuseAll(): void {
    this.isClosed = true;
    this.endWaiting({ kind: 'failed', error: closedError() });
    this.#closing.abort();
  }
}

function closedError(): InvalidArgumentError {
  return new InvalidArgumentError('These locks are closed. Make new ones with createLocks.');
}

function goneError(name: string, token: number, reply: Reply): LeaseLostError {
  const evicted = reply.kind === 'lost' && reply.evicted ? evictedBy(reply.evicted.reason) : null;
  const message =
    `The lease on "${name}" (token ${token}) that was handed off is over: ${evicted?.message ?? 'it expired, was released or was evicted'}. ` +
    'Do not do what it protects: others may hold the lock.';
  return new LeaseLostError(message, { key: name, reason: evicted?.reason ?? 'expired' });
}

function twiceError(name: string, token: number): InvalidArgumentError {
  const message = `The lease on "${name}" (token ${token}) is held here already: a handoff is adopted once.`;
  return new InvalidArgumentError(message, { key: name });
}
