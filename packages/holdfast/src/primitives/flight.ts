/**
 * One run of look, lock, look again, create, for all callers of one `locks` that want the value of a key.
 *
 * 1. Look. A value that is there needs no lock.
 * 2. Claim the lock without waiting. Granted: look again, create, release.
 * 3. Held, so somebody creates: wait with a shared claim, and look again. When that creation is over, all processes are
 *    granted at once. One after the other, the last of fifty would wait for fifty round trips.
 * 4. Still absent, because the creation failed or its process died: wait for the lock alone, look again, create.
 *
 * A caller leaves when its signal aborts, or when its wait ends while others create. A flight that all callers left stops
 * waiting for the lock; a creation that has begun goes on.
 */
import type { Lease } from '../api.js';
import { releaseQuietly } from '../lease/lease.js';
import type { LeaseRequest } from '../lease/lease-request.js';
import { READ_WRITE_CAPACITY } from '../protocol/constants.js';
import { InvalidArgumentError, UnsupportedError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import { type Context, outcomeOf } from './single.js';
import { type Busy, leaseOf, type Outcome, timeoutError } from './verbs.js';
import { runUnder } from './with-lock.js';

/** How the first caller looks for the value, and creates it. */
export interface Functions {
  readonly get: () => unknown;
  readonly create: (lease: Lease) => unknown;
}

/** Who waits for the result: a task of the timer queue, due when its wait ends. */
interface Caller {
  index: number;
  readonly untilMs: number;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  onDue(): void;
  onAbort(): void;
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

export class Flight {
  readonly #context: Context;
  readonly #request: LeaseRequest;
  readonly #functions: Functions;
  readonly #onOver: () => void;
  readonly #callers = new Set<Caller>();
  readonly #abandoned = new AbortController();
  /** Who has the lock, once that is known: from then on the waits of the callers count. */
  #busy: Busy | null = null;
  /** The caller whose own work the creation is: its wait does not end it. */
  #creator: Caller | null = null;
  #isCreating = false;

  /** `onOver`: it has a result, or all callers have left. Who comes later needs another flight. */
  constructor(context: Context, request: LeaseRequest, functions: Functions, onOver: () => void) {
    this.#context = context;
    this.#request = request;
    this.#functions = functions;
    this.#onOver = onOver;
  }

  /** To be called by the first caller before anybody else joins. */
  start(): void {
    const settle = (end: (caller: Caller) => void): void => {
      this.#onOver();
      for (const caller of this.#callers) {
        this.#forget(caller);
        end(caller);
      }
    };
    this.#run().then(
      (value) => settle(({ resolve }) => resolve(value)),
      (error: unknown) => settle(({ reject }) => reject(error)),
    );
  }

  /** Resolves to the value. */
  join({ waitMs, signal }: LeaseRequest): Promise<unknown> {
    const { client, aborts } = this.#context.leases;
    return new Promise((resolve, reject) => {
      const leave = (reason: unknown): void => {
        this.#forget(caller);
        reject(reason);
        if (this.#callers.size > 0 || this.#isCreating) return;
        this.#onOver();
        this.#abandoned.abort(reason);
      };
      const caller: Caller = {
        index: -1,
        untilMs: client.clock.monotonicMs() + waitMs,
        signal,
        resolve,
        reject,
        onDue: () => {
          if (this.#busy) leave(timeoutError(this.#busy));
        },
        onAbort: () => leave(signal?.reason),
      };
      this.#creator ??= caller;
      this.#callers.add(caller);
      if (signal) aborts.add(signal, caller);
      if (this.#busy) this.#bound(caller);
    });
  }

  async #run(): Promise<unknown> {
    const known = await this.#functions.get();
    if (!isAbsent(known)) return known;
    const free = await this.#acquire({ waitMs: 0 });
    if (free.kind === 'granted') return this.#createUnder(free.lease);
    this.#boundAll(free);
    const created = await this.#lookAfterOthers();
    if (!isAbsent(created)) return created;
    return this.#createUnder(leaseOf(await this.#acquire({ waitMs: Number.POSITIVE_INFINITY })));
  }

  async #acquire(change: Partial<LeaseRequest>): Promise<Outcome<Lease>> {
    const request = { ...this.#request, ...change, signal: this.#abandoned.signal };
    return outcomeOf(await this.#context.leases.acquire(request));
  }

  /** The value, as somebody else's creation left it. */
  async #lookAfterOthers(): Promise<unknown> {
    const shared = { permits: 1, capacity: READ_WRITE_CAPACITY, waitMs: Number.POSITIVE_INFINITY };
    let lease: Lease;
    try {
      lease = leaseOf(await this.#acquire(shared));
    } catch (error) {
      // Layouts of other software have no shared holders: look when the lock is free.
      if (error instanceof UnsupportedError) return undefined;
      throw error;
    }
    try {
      return await this.#functions.get();
    } finally {
      void releaseQuietly(lease);
    }
  }

  async #createUnder(lease: Lease): Promise<unknown> {
    this.#isCreating = true;
    this.#boundAll(busyWith(lease));
    let mayCreate = false;
    try {
      const found = await this.#functions.get();
      if (!isAbsent(found)) return found;
      lease.assertHeld();
      mayCreate = true;
    } finally {
      if (!mayCreate) void releaseQuietly(lease);
    }
    const created = await runUnder(lease, this.#functions.create);
    if (isAbsent(created)) throw absentError(lease.key, created);
    return created;
  }

  #boundAll(busy: Busy): void {
    this.#busy = busy;
    for (const caller of this.#callers) this.#bound(caller);
  }

  #bound(caller: Caller): void {
    const { timers } = this.#context.leases.client;
    if (this.#isCreating && caller === this.#creator) timers.cancel(caller);
    else timers.schedule(caller, caller.untilMs, true);
  }

  #forget(caller: Caller): void {
    const { client, aborts } = this.#context.leases;
    this.#callers.delete(caller);
    client.timers.cancel(caller);
    if (caller.signal) aborts.remove(caller.signal, caller);
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

function absentError(key: string, created: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `create for "${key}" returned ${show(created)}, which means that there is no value. Return what was created.`,
    { key },
  );
}
