/** Locks on one store, under one namespace: checks, then hands on to the primitive. */
import { hostname } from 'node:os';
import type {
  AcquireOptions,
  AdoptOptions,
  DrainOptions,
  EvictOptions,
  KeyChange,
  KeyInfo,
  Lease,
  LeaseGroup,
  ListOptions,
  Lockable,
  LockEventName,
  LockEvents,
  Locks,
  LocksOptions,
  ReadWrite,
  SharedOptions,
  WatchOptions,
} from './api.js';
import {
  ALONE,
  checkNamespace,
  checkOptions,
  checkOwner,
  type Defaults,
  durationMs,
  TTL_MS_MAX,
  TTL_MS_MIN,
} from './arguments.js';
import { type Clock, systemClock } from './clock.js';
import { adopt } from './engine/adoption.js';
import { Core } from './engine/core.js';
import { drain } from './engine/drain.js';
import { isEventName } from './engine/events.js';
import { answerWithin } from './engine/patience.js';
import { evict, inspect, list, watch } from './inspection.js';
import { HeldLease, runUnder } from './lease.js';
import { handedOffOf } from './primitives/adoption.js';
import { all } from './primitives/all.js';
import { any } from './primitives/any.js';
import { readWrite } from './primitives/read-write.js';
import { semaphore } from './primitives/semaphore.js';
import { ask, type Context, outcomeOf } from './primitives/single.js';
import { checkWork, leaseOf } from './primitives/verbs.js';
import { InvalidArgumentError } from './protocol/errors.js';
import type { Guarantees, Store } from './protocol/store.js';

const TTL_MS = 30_000;
const WAIT_MS = 10_000;
/** Shorter than the ten seconds after which containers are killed: work that is cut off has time to stop. */
const DRAIN_MS = 5_000;

/** Locks on this store. Makes no call to it until the first lock is wanted. */
export function createLocks(store: Store, options: LocksOptions = {}): Locks {
  return openLocks(store, options, systemClock);
}

/** With time and randomness of the caller's choice: for simulation. */
export function openLocks(store: Store, options: LocksOptions, clock: Clock): Locks {
  if (typeof store?.apply !== 'function') {
    throw new InvalidArgumentError(
      'createLocks needs a store, such as memoryStore() or await openStore(url).',
    );
  }
  // Checked first: a core counts as a user of its store.
  const defaults = defaultsOf(options);
  return new LocksOnStore(new Core(store, clock), defaults);
}

function defaultsOf(options: LocksOptions): Defaults {
  const { namespace, owner, ttl, wait } = checkOptions(options, ['namespace', 'owner', 'ttl', 'wait']);
  return {
    prefix: `${checkNamespace(namespace ?? 'default')}/`,
    owner: checkOwner(owner ?? `${hostname()}:${process.pid}`),
    ttlMs: durationMs(ttl ?? TTL_MS, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
    waitMs: durationMs(wait ?? WAIT_MS, 'wait', 0, Number.POSITIVE_INFINITY),
  };
}

class LocksOnStore implements Locks {
  readonly #core: Core;
  readonly #context: Context;
  #closed = false;
  #closing: Promise<void> = Promise.resolve();

  constructor(core: Core, defaults: Defaults) {
    this.#core = core;
    this.#context = { core, defaults, checkOpen: () => this.#checkOpen() };
  }

  async acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    const { defaults } = this.#context;
    return leaseOf(outcomeOf(await ask(this.#context, key, options, ALONE, defaults.waitMs)));
  }

  async tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null> {
    const outcome = outcomeOf(await ask(this.#context, key, options, ALONE, 0));
    return outcome.kind === 'granted' ? outcome.lease : null;
  }

  async withLock<T>(
    key: string,
    work: (lease: Lease) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    checkWork(work);
    return runUnder(await this.acquire(key, options), work);
  }

  semaphore(key: string, options: { readonly capacity: number }): Lockable<Lease, SharedOptions> {
    return semaphore(this.#context, key, options);
  }

  readWrite(key: string): ReadWrite {
    return readWrite(this.#context, key);
  }

  all(keys: readonly string[]): Lockable<LeaseGroup> {
    return all(this.#context, keys);
  }

  any(keys: readonly string[]): Lockable<Lease> {
    return any(this.#context, keys);
  }

  async adopt(handoff: string, options?: AdoptOptions): Promise<Lease> {
    const { core, defaults, checkOpen } = this.#context;
    const handed = handedOffOf(handoff, options, defaults);
    checkOpen();
    return new HeldLease(await adopt(core, handed, checkOpen));
  }

  inspect(key: string): Promise<KeyInfo | null> {
    return inspect(this.#context, key);
  }

  list(options?: ListOptions): AsyncIterable<KeyInfo> {
    return list(this.#context, options);
  }

  watch(options?: WatchOptions): AsyncIterable<KeyChange> {
    return watch(this.#context, options);
  }

  evict(key: string, options?: EvictOptions): Promise<number> {
    return evict(this.#context, key, options);
  }

  on<N extends LockEventName>(event: N, listener: (detail: LockEvents[N]) => void): () => void {
    if (!isEventName(event)) throw new InvalidArgumentError(`There is no event "${String(event)}".`);
    if (typeof listener !== 'function') throw new InvalidArgumentError('The listener has to be a function.');
    return this.#core.events.on(event, listener);
  }

  async probe(): Promise<Guarantees> {
    this.#checkOpen();
    return answerWithin(this.#core, this.#core.store.probe(), 'probe');
  }

  async releaseAll(options?: DrainOptions): Promise<void> {
    await drain(this.#core, drainMsOf(options), 'releaseAll() ended it before its holder did');
  }

  /** Called again while it drains, the shorter drain counts. */
  async close(options?: DrainOptions): Promise<void> {
    const drainMs = drainMsOf(options);
    if (this.#closed) await this.#drain(drainMs);
    else this.#closing = this.#close(drainMs);
    await this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    // Before anything else: what listeners do meanwhile is refused.
    this.#closed = true;
    this.#core.refuseAll(closedError());
    await this.#drain(drainMs);
    await this.#core.quiet();
    await this.#core.close();
  }

  async #drain(drainMs: number): Promise<void> {
    // A release that failed goes on in the background, as far as `quiet` waits for it.
    await Promise.allSettled([
      drain(this.#core, drainMs, 'the locks were closed before its holder released it'),
    ]);
  }

  #checkOpen(): void {
    if (this.#closed) throw closedError();
  }
}

function drainMsOf(options: DrainOptions = {}): number {
  const given = checkOptions(options, ['drain']);
  return durationMs(given.drain ?? DRAIN_MS, 'drain', 0, Number.POSITIVE_INFINITY);
}

function closedError(): InvalidArgumentError {
  return new InvalidArgumentError('These locks are closed. Make new ones with createLocks.');
}
