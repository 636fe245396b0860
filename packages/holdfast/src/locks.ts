/** Locks on one store, under one namespace. */
import { hostname } from 'node:os';
import type {
  AcquireOptions,
  AdoptOptions,
  DrainOptions,
  Election,
  ElectOptions,
  EvictOptions,
  GetOrCreateOptions,
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
  SignalSource,
  TryResult,
  WatchOptions,
  WorkOptions,
} from './api.js';
import { type Defaults, requestOf } from './arguments.js';
import { type Clock, systemClock } from './clock.js';
import { closeOn } from './close-on.js';
import { evict, inspect, list, watch } from './inspection.js';
import { adopt } from './lease/adopt.js';
import { EVENT_NAMES, isEventName } from './lease/events.js';
import { readHandoff } from './lease/handoff.js';
import type { HeldLease } from './lease/lease.js';
import { Leases } from './lease/leases.js';
import { all } from './primitives/all.js';
import { any } from './primitives/any.js';
import { elect } from './primitives/election.js';
import { Flights } from './primitives/get-or-create.js';
import { readWrite } from './primitives/read-write.js';
import { semaphore } from './primitives/semaphore.js';
import { acquireOne, type Context, lockable, outcomeOf } from './primitives/single.js';
import { leaseOf } from './primitives/verbs.js';
import { checkWork, hasWorkOptions, runUnder } from './primitives/with-lock.js';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from './protocol/durations.js';
import { InvalidArgumentError } from './protocol/errors.js';
import { checkKey, checkNamespace, checkOwner, show } from './protocol/names.js';
import { checkOptionNames } from './protocol/option-names.js';
import type { Guarantees, Store } from './protocol/store.js';
import { ALONE } from './queue/request.js';
import type { Outcome as Waited } from './queue/waiter.js';

const TTL_MS = 30_000;
const WAIT_MS = 10_000;
/** Shorter than the ten seconds after which containers are killed, so that work that loses its lease has time to stop. */
const DRAIN_MS = 5_000;

/** Makes locks on this store. Sends nothing to it before the first call. */
export function createLocks(store: Store, options: LocksOptions = {}): Locks {
  return openLocks(store, options, systemClock);
}

/** Makes locks whose namespace is read at the first key. */
export function lazyLocks(store: Store, namespaceOf: () => string | undefined): Locks {
  let prefix = '';
  const defaults: Defaults = {
    ...defaultsOf({}),
    get prefix() {
      prefix ||= prefixOf(namespaceOf());
      return prefix;
    },
  };
  return new LocksOnStore({ leases: new Leases(store, systemClock), defaults });
}

/** Makes locks with another clock, for simulation. */
export function openLocks(store: Store, options: LocksOptions, clock: Clock): Locks {
  // A function has `apply` too: `memoryStore` instead of `memoryStore()`.
  if (typeof store !== 'object' || typeof store?.apply !== 'function') {
    throw new InvalidArgumentError(
      'createLocks needs a store, such as memoryStore() or await openStore(url).',
    );
  }
  // Checked first: the leases count as a user of their store from now on.
  const defaults = defaultsOf(options);
  return new LocksOnStore({ leases: new Leases(store, clock), defaults });
}

function defaultsOf(options: LocksOptions): Defaults {
  const {
    namespace,
    owner = `${hostname()}:${process.pid}`,
    ttl = TTL_MS,
    wait = WAIT_MS,
  } = checkOptionNames(options, ['namespace', 'owner', 'ttl', 'wait']);
  return {
    prefix: prefixOf(namespace),
    owner: checkOwner(owner),
    ttlMs: durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX),
    waitMs: durationMs(wait, 'wait', 0, Number.POSITIVE_INFINITY),
  };
}

const contexts = new WeakMap<Locks, Context>();

/** The leases and defaults of these locks, for parts of the library that are built on locks. */
export function contextOf(locks: Locks): Context {
  const context = contexts.get(locks);
  if (context) return context;
  throw new InvalidArgumentError('Pass the locks that createLocks returned.');
}

const prefixOf = (namespace = 'default'): string => `${checkNamespace(namespace)}/`;

class LocksOnStore implements Locks {
  readonly #context: Context;
  readonly #leases: Leases;
  readonly #flights: Flights;
  #closing: Promise<void> = Promise.resolve();
  readonly #onClosed = new Set<() => void>();

  constructor(context: Context) {
    this.#context = context;
    contexts.set(this, context);
    this.#leases = context.leases;
    this.#flights = new Flights(context);
  }

  /** Not an async function: a lock that is granted at once costs one promise. */
  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    const { leases, defaults } = this.#context;
    try {
      const acquired = leases.acquire(requestOf(key, options, ALONE, defaults, defaults.waitMs));
      return acquired instanceof Promise
        ? acquired.then(leaseGranted)
        : Promise.resolve(leaseGranted(acquired));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null> {
    const outcome = await acquireOne(this.#context, key, options, ALONE, 0);
    return outcome.kind === 'granted' ? outcome.lease : null;
  }

  async withLock<T>(
    key: string,
    work: (lease: Lease) => Promise<T> | T,
    options?: AcquireOptions & WorkOptions,
  ): Promise<T> {
    if (hasWorkOptions(options)) return lockable(this.#context, key, ALONE).withLock(work, options);
    checkWork(work);
    return runUnder(await this.acquire(key, options), work);
  }

  tryWithLock<T>(
    key: string,
    work: (lease: Lease) => Promise<T> | T,
    options?: AcquireOptions & WorkOptions,
  ): Promise<TryResult<T>> {
    return lockable(this.#context, key, ALONE).tryWithLock(work, options);
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

  getOrCreate<T extends NonNullable<unknown>>(key: string, options: GetOrCreateOptions<T>): Promise<T> {
    return this.#flights.getOrCreate(key, options);
  }

  elect(key: string, options?: ElectOptions): Election {
    return elect(this.#context, key, options, () => this.inspect(key));
  }

  async adopt(handoff: string, options?: AdoptOptions): Promise<Lease> {
    const { leases, defaults } = this.#context;
    const { ttl } = checkOptionNames(options ?? {}, ['ttl']);
    const handed = readHandoff(handoff, defaults.prefix);
    const { request } = handed;
    const ttlMs = ttl === undefined ? request.ttlMs : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX);
    return adopt(leases, { ...handed, request: { ...request, ttlMs } });
  }

  held(key: string): Lease | undefined {
    return this.#leases.held(this.#context.defaults.prefix + checkKey(key))[0];
  }

  leases(): Lease[] {
    return this.#leases.held();
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
    if (!isEventName(event)) {
      throw new InvalidArgumentError(
        `There is no event ${show(event)}. The events are: ${EVENT_NAMES.join(', ')}.`,
      );
    }
    if (typeof listener !== 'function') throw new InvalidArgumentError('The listener has to be a function.');
    return this.#leases.events.on(event, listener);
  }

  async probe(): Promise<Guarantees> {
    this.#leases.checkOpen();
    const { client } = this.#leases;
    return client.within(client.store.probe(), 'probe');
  }

  async releaseAll(options?: DrainOptions): Promise<void> {
    await this.#leases.drain(drainMsOf(options), 'releaseAll() ended it before its holder did');
  }

  /** If it is called again while it drains, the shorter drain counts. */
  async close(options?: DrainOptions): Promise<void> {
    const drainMs = drainMsOf(options);
    if (this.#leases.isClosed) await this.#drain(drainMs);
    else this.#closing = this.#close(drainMs);
    await this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    // Before anything else, so that calls of listeners are refused.
    this.#leases.refuseAll();
    try {
      await this.#drain(drainMs);
      await this.#leases.client.releases.allAnswered();
      await this.#leases.client.close();
    } finally {
      for (const stop of this.#onClosed) stop();
    }
  }

  closeOn(source: SignalSource, options?: DrainOptions): () => void {
    drainMsOf(options);
    const stop = closeOn(this, source, options);
    this.#onClosed.add(stop);
    return () => {
      stop();
      this.#onClosed.delete(stop);
    };
  }

  async #drain(drainMs: number): Promise<void> {
    // A release that failed goes on in the background, for as long as `allAnswered` waits for it.
    await Promise.allSettled([
      this.#leases.drain(drainMs, 'the locks were closed before its holder released it'),
    ]);
  }
}

const leaseGranted = (waited: Waited<HeldLease>): Lease =>
  waited.kind === 'granted' ? waited.grant : leaseOf(outcomeOf(waited));

export function drainMsOf(options: DrainOptions = {}): number {
  const { drain = DRAIN_MS } = checkOptionNames(options, ['drain']);
  return durationMs(drain, 'drain', 0, Number.POSITIVE_INFINITY);
}
