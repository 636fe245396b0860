/**
 * A flight: look, lock, look again, create. It runs the functions of one caller, the leader, for all callers of one
 * `locks` that want the value of a key.
 *
 * 1. Look. If the value is there, no lock is needed.
 * 2. Claim the lock without waiting. Granted: look again, create, release.
 * 3. If the lock is held, another process creates: wait with a shared claim, and look again. When that creation is over,
 *    all shared claims are granted together. Granted in turn, the last of fifty would wait for fifty round trips.
 * 4. If the value is still absent (a failed creation, a dead process): wait for the lock alone, look again, create.
 *
 * A caller leaves when its signal aborts, or when its wait ends; the wait of the leader does not count while its own
 * functions run. When the locks begin to close, all but the leader leave. A flight that all callers left stops waiting for
 * the lock; a creation that has begun goes on.
 *
 * The flight is over when it has a value, when it fails, or when its lease is lost, even if `create` never ends. An error
 * is for all callers, with two exceptions. After the leader left, it may be only due to that; and a lost lease is the
 * leader's alone. Then the other callers go on in another flight.
 */
import type { Lease } from '../api.js';
import { releaseQuietly } from '../lease/lease.js';
import type { LeaseRequest } from '../lease/lease-request.js';
import { runInFlight } from '../lease/work-context.js';
import { READ_WRITE_CAPACITY } from '../protocol/constants.js';
import { AcquireTimeoutError, InvalidArgumentError, UnsupportedError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import type { Store } from '../protocol/store.js';
import type { Caller } from './flight-caller.js';
import { type Context, outcomeOf } from './single.js';
import { type Busy, leaseOf, type Outcome, timeoutError } from './verbs.js';
import { releaseAfterInnerWork, runHolding, runUnder } from './with-lock.js';

interface FlightOwner {
  /** No caller may join the flight any more. */
  onClosed(flight: Flight): void;
  /** Callers of a flight that is over without an answer for them. */
  goOn(callers: readonly Caller[]): void;
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

export class Flight {
  readonly key: string;
  readonly store: Store;
  isOver = false;
  readonly #context: Context;
  readonly #leader: Caller;
  readonly #owner: FlightOwner;
  readonly #callers = new Set<Caller>();
  readonly #abandoned = new AbortController();
  /** The holders of the lock; null while the flight looks for the value. */
  #busy: Busy | null = null;
  /** The lease under which the value is created. */
  #lease: Lease | null = null;

  constructor(context: Context, leader: Caller, owner: FlightOwner) {
    this.key = leader.request.key;
    this.store = context.leases.client.store;
    this.#context = context;
    this.#leader = leader;
    this.#owner = owner;
  }

  get isLooking(): boolean {
    return this.#busy === null;
  }

  start(): void {
    this.#callers.add(this.#leader);
    this.#leader.joins(this, false);
    this.#leader
      .runInContext(() => runInFlight(this, () => this.#run()))
      .then(
        (value) => {
          for (const caller of this.#end()) caller.resolve(value);
        },
        (error: unknown) => this.#fail(error),
      );
  }

  join(caller: Caller): void {
    const { aborts, closing } = this.#context.leases;
    this.#callers.add(caller);
    caller.joins(this, true);
    aborts.add(closing, this);
  }

  /** The locks begin to close. The leader may end its running function; if it waits for the lock, its claim fails. */
  onAbort(): void {
    const { reason } = this.#context.leases.closing;
    for (const caller of [...this.#callers]) if (caller !== this.#leader) this.leave(caller, reason);
  }

  leave(caller: Caller, reason: unknown): void {
    this.#callers.delete(caller);
    caller.reject(reason);
    if (this.#callers.size > 0 || this.#lease) return;
    this.#end();
    this.#abandoned.abort(reason);
  }

  onWaited(caller: Caller): void {
    if (this.#busy) {
      this.leave(caller, timeoutError(this.#busy));
      return;
    }
    // The look may never end, so later callers look by themselves.
    this.#owner.onClosed(this);
    this.leave(caller, lookError(caller.request.name));
  }

  async #run(): Promise<unknown> {
    this.#context.leases.checkOpen();
    const { get } = this.#leader.functions;
    const known = await get();
    if (!isAbsent(known)) return known;
    const free = await this.#acquire({ waitMs: 0 });
    if (free.kind === 'granted') return this.#createUnder(free.lease);
    this.#waitFor(free, true);
    if (await this.#othersAreDone()) {
      this.#waitFor(null, false);
      const created = await get();
      if (!isAbsent(created)) return created;
      this.#waitFor(free, true);
    }
    return this.#createUnder(leaseOf(await this.#acquire({ waitMs: Number.POSITIVE_INFINITY })));
  }

  async #acquire(change: Partial<LeaseRequest>): Promise<Outcome<Lease>> {
    const request = { ...this.#leader.request, ...change, signal: this.#abandoned.signal };
    return outcomeOf(await this.#context.leases.acquire(request));
  }

  /** Waits until no process creates. False if the store cannot tell. */
  async #othersAreDone(): Promise<boolean> {
    const shared = { permits: 1, capacity: READ_WRITE_CAPACITY, waitMs: Number.POSITIVE_INFINITY };
    try {
      void releaseQuietly(leaseOf(await this.#acquire(shared)));
      return true;
    } catch (error) {
      // Layouts of other software have no shared holders: look when the lock is free.
      if (error instanceof UnsupportedError) return false;
      throw error;
    }
  }

  /** Rejects when the lease is lost, unless the creation itself reacts to that at once. */
  #createUnder(lease: Lease): Promise<unknown> {
    const { clock } = this.#context.leases.client;
    this.#lease = lease;
    this.#waitFor(busyWith(lease), false);
    return new Promise((resolve, reject) => {
      const onLost = (): void => clock.afterTurn(() => reject(lease.signal.reason));
      if (lease.signal.aborted) onLost();
      else lease.signal.addEventListener('abort', onLost, { once: true });
      this.#lookAndCreate(lease).then(resolve, reject);
    });
  }

  async #lookAndCreate(lease: Lease): Promise<unknown> {
    const { get, create } = this.#leader.functions;
    let mayCreate = false;
    try {
      const found = await runHolding([lease], get);
      if (!isAbsent(found)) return found;
      lease.assertHeld();
      mayCreate = true;
    } finally {
      if (!mayCreate) void releaseAfterInnerWork(lease);
    }
    const created = await runUnder(lease, create);
    if (isAbsent(created)) throw absentError(lease.key, created);
    return created;
  }

  /** `isLeaderBounded`: the leader waits as well, and runs no function of its own. */
  #waitFor(busy: Busy | null, isLeaderBounded: boolean): void {
    this.#busy = busy;
    if (this.#callers.has(this.#leader)) this.#leader.bound(isLeaderBounded);
  }

  #fail(error: unknown): void {
    const isForAll = this.#callers.has(this.#leader) && this.#lease?.state !== 'lost';
    const others: Caller[] = [];
    for (const caller of this.#end()) {
      if (isForAll || caller === this.#leader) caller.reject(error);
      else others.push(caller);
    }
    this.#owner.goOn(others);
  }

  #end(): readonly Caller[] {
    const { aborts, closing } = this.#context.leases;
    const callers = [...this.#callers];
    this.isOver = true;
    this.#callers.clear();
    aborts.remove(closing, this);
    this.#owner.onClosed(this);
    return callers;
  }
}

/** The lock is held by this flight itself. */
function busyWith(lease: Lease): Busy {
  const { key, owner, token, metadata, acquiredAt, expiresAt } = lease;
  const holder = {
    owner,
    token,
    permits: 1,
    capacity: 1,
    acquiredAt: acquiredAt.getTime(),
    expiresAt: expiresAt.getTime(),
    metadata: metadata === undefined ? null : JSON.stringify(metadata),
    resting: false,
  };
  return { kind: 'busy', key, holders: [holder], heldHere: true };
}

function lookError(key: string): AcquireTimeoutError {
  return new AcquireTimeoutError(
    `"${key}" was not found in time: another call in this process began to look for it, and its \`get\`, or its first claim ` +
      'of the lock, has not ended. Try later, or wait longer with the option `wait`.',
    { key },
  );
}

function absentError(key: string, created: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `create for "${key}" returned ${show(created)}, which means that there is no value. Return what was created.`,
    { key },
  );
}
