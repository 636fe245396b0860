/** All leases of one process on one store, and the holds that they are on: acquiring, releasing, draining and closing. */
import type { Clock, Moment } from '../clock.js';
import type { Granted, Why } from '../protocol/commands.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Store } from '../protocol/store.js';
import { KeyQueues } from '../queue/key-queues.js';
import { claimOf } from '../queue/request.js';
import type { Outcome } from '../queue/waiter.js';
import { mayBeExecuted } from '../store-client/retried-command.js';
import { StoreClient } from '../store-client/store-client.js';
import { ClockWatch } from './clock-watch.js';
import { CHANNELS, callOf, Events } from './events.js';
import { Hold, type HoldOwner } from './hold.js';
import { HeldLease } from './lease.js';
import { LeaseQueue, type LeaseQueueOwner } from './lease-queue.js';
import type { LeaseRequest } from './lease-request.js';
import { Pause } from './pause.js';
import { checkNotNested, workContext } from './work-context.js';

/** The promise of every release that is answered at once. */
const RELEASED = Promise.resolve();

export class Leases
  extends KeyQueues<LeaseRequest, HeldLease, LeaseQueue>
  implements LeaseQueueOwner, HoldOwner
{
  readonly events = new Events();
  /** The random part of every hold id. */
  readonly #process: string;
  readonly clockWatch: ClockWatch;
  isClosed = false;
  readonly #closing = new AbortController();
  /** Aborts when the locks begin to close, with the error for waiting callers. Leases are still held then, and drain. */
  readonly closing = this.#closing.signal;
  #holdNumber = 0;
  override readonly newHold = (): HoldId => ({ process: this.#process, number: ++this.#holdNumber });
  /** The first hold of each key; the others are linked behind it. */
  #holds = new Map<string, Hold>();

  constructor(store: Store, clock: Clock) {
    super(new StoreClient(store, clock, true));
    this.#process = clock.randomId();
    this.clockWatch = new ClockWatch(this.client, () => {
      for (const hold of this.#allHolds()) hold.check();
    });
  }

  acquire(request: LeaseRequest): Outcome<HeldLease> | Promise<Outcome<HeldLease>> {
    if (this.isClosed) throw closedError();
    request.signal?.throwIfAborted();
    if (request.waitMs > 0 && workContext.getStore()) checkNotNested(this.client.store, request);
    if (this.events.has(CHANNELS.acquiring)) {
      this.events.emit('acquiring', request, () => ({ call: callOf(request) }));
    }
    if (!this.client.wakes.isStarted) this.client.wakes.start();
    const queue = this.queues.get(request.key);
    const isAlone = !queue && this.client.batch.answersAtOnce && !this.#holds.has(request.key);
    const lease = isAlone ? this.#acquireAtOnce(request) : null;
    return lease ? { kind: 'granted', grant: lease } : (queue ?? this.#newQueue(request.key)).enter(request);
  }

  /** The fast path for a store that answers at once, for a key without holds and waiters here. Null unless it is free. */
  #acquireAtOnce(request: LeaseRequest): HeldLease | null {
    const { clock, batch, wakes } = this.client;
    const sent: Moment = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const id = this.newHold();
    const reply = batch.atOnce(claimOf(request, id, false, wakes.inbox));
    if (reply instanceof Error) {
      if (mayBeExecuted(reply)) this.client.releases.withdraw(request.key, id, request.ttlMs);
      return null;
    }
    if (reply?.kind !== 'granted') return null;
    this.client.storeAheadMs = reply.now - sent.monotonicMs;
    // No second look at the clocks: the reply came during this call.
    const lease = new HeldLease(this.newHoldOf(id, request, reply, sent), reply.acquiredAt);
    if (this.events.has(CHANNELS.acquired)) this.tellAcquired(lease, request, sent.monotonicMs, false);
    return lease;
  }

  tellAcquired(lease: HeldLease, request: LeaseRequest, sinceMs: number, handedOver: boolean): void {
    const waitedMs = this.client.clock.monotonicMs() - sinceMs;
    const { token } = lease;
    this.events.emit('acquired', request, () => ({ call: callOf(request), token, waitedMs, handedOver }));
  }

  #newQueue(key: string): LeaseQueue {
    const queue = new LeaseQueue(this, key, this.firstHold(key));
    this.queues.set(key, queue);
    return queue;
  }

  firstHold(key: string): Hold | null {
    return this.#holds.get(key) ?? null;
  }

  newHoldOf(id: HoldId, request: LeaseRequest, reply: Granted, sent: Moment): Hold {
    const hold = new Hold(this, id, request, reply, sent);
    let last = this.#holds.get(request.key);
    if (last) {
      while (last.next) last = last.next;
      last.next = hold;
    } else this.#holds.set(request.key, hold);
    return hold;
  }

  #end(hold: Hold): void {
    hold.end();
    const { key } = hold.request;
    const first = this.#holds.get(key);
    if (first === hold && hold.next) this.#holds.set(key, hold.next);
    else if (first !== hold) unlink(first, hold);
    // Replaced for the reason that `KeyQueues` gives.
    else if (this.#holds.size === 1) this.#holds = new Map();
    else this.#holds.delete(key);
  }

  leave(hold: Hold, handOver: boolean, minHoldMs = hold.request.minHoldMs): Promise<void> {
    const { key, name, ttlMs, maxHoldMs } = hold.request;
    const queue = this.queues.get(key);
    hold.user = null;
    if (maxHoldMs !== Number.POSITIVE_INFINITY) hold.limitTo(null);
    if (handOver && queue?.passOn(hold, true)) return RELEASED;
    this.#end(hold);
    const { batch, releases } = this.client;
    const tokenUsed = batch.answersAtOnce ? hold.tokenUsed : undefined;
    const command = { kind: 'release', key, hold: hold.id, minHoldMs, tokenUsed } as const;
    const reply = batch.atOnce(command);
    const isOver = reply !== null && !(reply instanceof Error);
    const released = isOver ? RELEASED : releases.release(command, name, ttlMs, hold.lifeMs);
    queue?.advance();
    return released;
  }

  giveBack(hold: Hold): void {
    this.#end(hold);
    this.client.releases.withdraw(hold.request.key, hold.id, hold.request.ttlMs, hold.lifeMs);
  }

  onRenewed(hold: Hold): void {
    const queue = this.queues.get(hold.request.key);
    if (queue?.passOn(hold, false)) return;
    this.giveBack(hold);
    queue?.advance();
  }

  drop(hold: Hold): void {
    hold.user = null;
    this.#end(hold);
    this.onSetApart(hold);
  }

  onSetApart({ request }: Hold): void {
    this.queues.get(request.key)?.advance();
  }

  override onWake(key: string, why: Why): void {
    for (const hold of this.holdsOn(key)) {
      if (why === 'waiting') hold.noteOthers(true, this.client.clock.monotonicMs());
      if (why === 'evicted') hold.suspectEviction();
    }
    super.onWake(key, why);
  }

  /** The holds of this process on a key. A copy, because holds may end while the caller goes through them. */
  holdsOn(key: string): readonly Hold[] {
    const holds: Hold[] = [];
    for (let hold = this.#holds.get(key); hold; hold = hold.next ?? undefined) holds.push(hold);
    return holds;
  }

  #allHolds(): readonly Hold[] {
    return [...this.#holds.keys()].flatMap((key) => this.holdsOn(key));
  }

  checkOpen(): void {
    if (this.isClosed) throw closedError();
  }

  /** Every lease held here now, of all keys or of one. */
  held(key?: string): HeldLease[] {
    const holds = key === undefined ? this.#allHolds() : this.holdsOn(key);
    return holds.flatMap(({ user }) => (user instanceof HeldLease && user.held ? user : []));
  }

  /**
   * Gives the leases of this moment `drainMs` to end, then revokes those still held. If one revocation fails, the others
   * are still tried; then the first failure is thrown.
   */
  async drain(drainMs: number, message: string): Promise<void> {
    const leases = this.held();
    if (drainMs > 0 && leases.length > 0) {
      const pause = new Pause(this, drainMs);
      void Promise.all(leases.map((lease) => HeldLease.ended(lease))).then(() => pause.end());
      await pause.over;
    }
    for (const outcome of await Promise.allSettled(
      leases.map((lease) => HeldLease.revoke(lease, { reason: 'closed', message })),
    )) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
  }

  /** Refuses calls from now on, ends all waiting, and aborts `closing` for loops that have to stop by themselves. */
  refuseAll(): void {
    this.isClosed = true;
    const error = closedError();
    this.endWaiting({ kind: 'failed', error });
    this.#closing.abort(error);
  }
}

function closedError(): InvalidArgumentError {
  return new InvalidArgumentError('These locks are closed. Make new ones with createLocks.');
}

/** Takes a hold out of the list behind another. */
function unlink(first: Hold | undefined, hold: Hold): void {
  for (let other = first; other; other = other.next ?? undefined) {
    if (other.next === hold) other.next = hold.next;
  }
}
