/** The public shapes: arguments and results. Types only. */
import type { LockEventName, LockEvents } from './lock-events.js';
import type { HolderInfo, Metadata } from './protocol/holder-info.js';
import type { Guarantees } from './protocol/store.js';

export type { HolderInfo, LockEventName, LockEvents, Metadata };

/** The types of TypeScript's `esnext.disposable`, for projects that compile without it. */
declare global {
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): PromiseLike<void>;
  }
}

/** Milliseconds, or a number with a unit: '500ms', '30s', '5m', '1h', '7d'. */
export type Duration = number | `${number}ms` | `${number}s` | `${number}m` | `${number}h` | `${number}d`;

/** Options of every call that acquires a lock. */
export interface AcquireOptions {
  /** How long the lease lives without renewal. Default 30 s. */
  readonly ttl?: Duration;
  /** How long to wait for the lock. Default 10 s for `acquire` and `withLock`, 0 for `tryAcquire` and `tryWithLock`. */
  readonly wait?: Duration;
  /** Ends the waiting: the call rejects with the signal's reason. It does not end a lease. Default none. */
  readonly signal?: AbortSignal;
  /** The caller's name, for people to read. Default `host:pid`. */
  readonly owner?: string;
  /** Shown when the key is inspected. At most 4,096 bytes of JSON. Default none. */
  readonly metadata?: Metadata;
  /** Whether the lease renews itself until released. Default true. */
  readonly renew?: boolean;
  /** How long nobody else gets the key after the grant, even if it is released sooner. Default 0. */
  readonly minHold?: Duration;
  /** How long the lease may live in all. Then it is lost, and the lock is free. Default: no limit. */
  readonly maxHold?: Duration;
  /**
   * Whether to wait in the store's queue, if it has one. Default true. If false, the call polls; others may come first.
   */
  readonly queue?: boolean;
}

/** Options of `locks.adopt`. */
export interface AdoptOptions {
  /** How long the lease lives without renewal from now on. Default: the ttl it was acquired with. */
  readonly ttl?: Duration;
}

/** Options of `lease.release`. */
export interface ReleaseOptions {
  /**
   * A shorter `minHold` than that of the acquire: for example 0 if no work was done, so that others get the lock at once.
   * Default: the `minHold` of the acquire.
   */
  readonly minHold?: Duration;
}

/** Options of a semaphore. */
export interface SharedOptions extends AcquireOptions {
  /** How many permits to take. Default 1. */
  readonly permits?: number;
}

/** First `held`, then one of the others for ever. */
export type LeaseState = 'held' | 'released' | 'lost' | 'handed-off';

/** A lock held for a limited time. It ends by release, loss or handoff; `signal` aborts when it is lost. */
export interface Lease extends AsyncDisposable {
  /** The name of the key, without its namespace. */
  readonly key: string;
  /** The fencing token: greater than that of every earlier lease of this key. */
  readonly token: number;
  /** As given by the caller. */
  readonly owner: string;
  /** As given by the caller. */
  readonly metadata: Metadata | undefined;
  /** By the store's clock. */
  readonly acquiredAt: Date;
  /** The expiry by the store's clock, as of its last reply. */
  readonly expiresAt: Date;
  /** Aborted with a `LeaseLostError` at the moment the lease is lost. Never by a release or a handoff. */
  readonly signal: AbortSignal;
  /** Its state now. A lease that ended is never `held` again. */
  readonly state: LeaseState;
  /** Whether it is held now, by the clocks: right even after a pause, before any timer ran. */
  readonly held: boolean;
  /** How long it is certain to be held without another renewal; 0 when it is over. */
  readonly remainingMs: number;
  /** Throws `LeaseLostError` unless the lease is held now. Call it right before work that must not happen twice. */
  assertHeld(): void;
  /** Renews now; with a ttl, the lease lives at least that long from now. Rejects with `LeaseLostError` if it is lost. */
  renew(ttl?: Duration): Promise<void>;
  /** Ends the lease. Does not reject if it was lost or released before; `StoreError` if the store does not answer. */
  release(options?: ReleaseOptions): Promise<void>;
  /**
   * Ends the lease here, but keeps the lock: the string lets another process continue it with `locks.adopt` before the
   * ttl ends. The string is a secret; adopt it once. Rejects with `LeaseLostError` when the lease is over, and with
   * `StoreError` when the store does not answer: then the lease is still held here.
   */
  handoff(): Promise<string>;
}

/** Several leases as one. The group is held while all of them are held. */
export interface LeaseGroup extends AsyncDisposable {
  /** One per key, in the order in which they were acquired. */
  readonly leases: readonly Lease[];
  /** Aborted when any of them is lost. */
  readonly signal: AbortSignal;
  /** Whether all of them are held now. */
  readonly held: boolean;
  /** Throws `LeaseLostError` unless all are held at this moment. */
  assertHeld(): void;
  /** Releases all of them. */
  release(options?: ReleaseOptions): Promise<void>;
}

/** Further options of `withLock` and `tryWithLock`. */
export interface WorkOptions {
  /**
   * Whether a call inside work under the same lock uses that work's lease. Its other options then have no effect, and the
   * lock is released when both have ended. Default false: the call is refused, as it would wait for itself.
   */
  readonly reentrant?: boolean;
}

/** The result of `tryWithLock`: the value of the work, or the holders of the lock. */
export type TryResult<T> =
  | { readonly acquired: true; readonly value: T }
  | { readonly acquired: false; readonly holders: readonly HolderInfo[] };

/** The four verbs. Everything that can be locked has them. */
export interface Lockable<L, O extends AcquireOptions = AcquireOptions> {
  /** Waits up to `wait`, then rejects with `AcquireTimeoutError`. */
  acquire(options?: O): Promise<L>;
  /** Null when others hold the lock. Waits only if `wait` is given. */
  tryAcquire(options?: O): Promise<L | null>;
  /**
   * Runs work under the lock. If it resolves after the lease was lost, the call rejects with `LeaseLostError`, whose
   * `result` has the value. Errors of the work are passed on. A failed release changes neither.
   */
  withLock<T>(work: (lease: L) => Promise<T> | T, options?: O & WorkOptions): Promise<T>;
  /** As `withLock`, if the lock is free; else nothing runs. Waits only if `wait` is given. */
  tryWithLock<T>(work: (lease: L) => Promise<T> | T, options?: O & WorkOptions): Promise<TryResult<T>>;
}

/** A read-write lock: many readers at once, or one writer. */
export interface ReadWrite {
  /** Shared with other readers. */
  readonly read: Lockable<Lease>;
  /** Exclusive. Readers that come later wait behind a waiting writer. */
  readonly write: Lockable<Lease>;
}

/** Options of `locks.elect`. */
export interface ElectOptions {
  /** How long a dead leader may count as the leader. Default: as for every lease. */
  readonly ttl?: Duration;
  /** Shown with the leader. Default none. */
  readonly metadata?: Metadata;
  /** The leader's name, for people to read. Default `host:pid`. */
  readonly owner?: string;
  /** Ends the loop: a campaign at once, a term when its body has ended. `term.signal` aborts, too. Default none. */
  readonly signal?: AbortSignal;
}

/** The leader of an election. */
export interface Leader {
  /** The leader's name, for people to read. */
  readonly owner: string;
  /** As the leader gave it. */
  readonly metadata: Metadata | undefined;
  /** The number of the term: that of the leader's lease. */
  readonly token: number;
  /** By the store's clock. */
  readonly since: Date;
}

/** Options of `election.observe`. */
export interface ObserveOptions {
  /** How often to read the key. Default 500 ms. */
  readonly every?: Duration;
  /** Ends the iteration. Default none. */
  readonly signal?: AbortSignal;
}

/**
 * A `for await` loop over it campaigns: each time this process becomes the leader, it yields a term, and the body leads.
 * The body watches `term.signal`, which aborts when the term is lost. When the body ends, the term is released. `break`,
 * `return` and an error leave the election; otherwise the loop campaigns again, behind the candidates that wait.
 */
export interface Election extends AsyncIterable<Lease> {
  /** Reads the leader; null when there is none. */
  leader(): Promise<Leader | null>;
  /** Yields the leader, then every change; null while there is none. A term shorter than `every` may be missed. */
  observe(options?: ObserveOptions): AsyncIterable<Leader | null>;
}

/** A waiter of a key, as `inspect` and `list` show it. */
export interface WaiterInfo {
  /** The waiter's name, for people to read. */
  readonly owner: string;
  /** How many permits it wants. */
  readonly permits: number;
  /** The capacity that it named. */
  readonly capacity: number;
  /** When it joined the queue, by the store's clock. */
  readonly since: Date;
}

/** The holders and the waiters of a key. */
export interface KeyInfo {
  /** The name of the key, without its namespace. */
  readonly key: string;
  /** The store's time of this view. */
  readonly now: Date;
  /** Empty while there are only waiters. */
  readonly holders: readonly HolderInfo[];
  /** In the order of the queue. */
  readonly waiters: readonly WaiterInfo[];
}

/** Options of `locks.list`. */
export interface ListOptions {
  /** Only keys that begin with this. Default: all keys of the namespace. */
  readonly prefix?: string;
  /** How many keys at most. Default: no limit. */
  readonly limit?: number;
  /** Only keys that sort after this one, for the next page. The key itself need not be in use. Default: from the first key. */
  readonly after?: string;
}

/** Options of `locks.watch`. */
export interface WatchOptions {
  /** Only keys that begin with this. Default: all keys of the namespace. */
  readonly prefix?: string;
  /** How often to read the keys. Default 500 ms. */
  readonly every?: Duration;
  /** Ends the iteration. Default none. */
  readonly signal?: AbortSignal;
}

/** Options of `locks.evict`. Default: all holders of the key are evicted, without a reason. */
export interface EvictOptions {
  /**
   * Only the holder with this token, as `inspect` or its lease shows it. A hold that is passed on within its process has
   * the tokens of all its leases; each of them ends it. Default: all holders.
   */
  readonly token?: number;
  /** Only holders with this token or a lower one, so that no later holder is evicted. Default: all. */
  readonly upToToken?: number;
  /** In the `LeaseLostError` of the evicted holders and in the service's audit log. At most 256 bytes. Default none. */
  readonly reason?: string;
}

/** A change that `watch` yields: a key came into use, changed, or is free again. */
export interface KeyChange {
  /** `gone`: the key has no holder and no waiter any more. */
  readonly kind: 'appeared' | 'changed' | 'gone';
  /** The key as it is now; for `gone`, its last view. */
  readonly info: KeyInfo;
}

/** Options of `locks.getOrCreate`: how to find the value, and how to make it. */
export interface GetOrCreateOptions<T>
  extends Pick<AcquireOptions, 'ttl' | 'wait' | 'signal' | 'owner' | 'metadata' | 'maxHold'> {
  /** Looks for the value. `undefined` and `null` mean that there is none. */
  get(): Promise<T | null | undefined> | T | null | undefined;
  /** Makes the value and stores it where `get` looks, under the lock. */
  create(lease: Lease): Promise<T> | T;
}

/** Locks on one store, under one namespace. */
export interface Locks {
  /** Waits for the lock, up to `wait`, then rejects with `AcquireTimeoutError`. */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /** Null when others hold the lock. Waits only if `wait` is given. */
  tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null>;
  /**
   * Acquires the lock as `acquire` does, runs the work, and releases. If the work resolves after the lease was lost, the
   * call rejects with `LeaseLostError`, whose `result` has the value. Errors of the work are passed on.
   */
  withLock<T>(
    key: string,
    work: (lease: Lease) => Promise<T> | T,
    options?: AcquireOptions & WorkOptions,
  ): Promise<T>;
  /** As `withLock`, if the lock is free; else nothing runs. Waits only if `wait` is given. */
  tryWithLock<T>(
    key: string,
    work: (lease: Lease) => Promise<T> | T,
    options?: AcquireOptions & WorkOptions,
  ): Promise<TryResult<T>>;
  /** A semaphore of `capacity` permits. All users of a key should name the same capacity; the smallest counts. */
  semaphore(key: string, options: { readonly capacity: number }): Lockable<Lease, SharedOptions>;
  /** A lock that readers share and a writer has alone. */
  readWrite(key: string): ReadWrite;
  /** Locks all of the keys or none, in the same order everywhere, so that two such calls never deadlock. */
  all(keys: readonly string[]): Lockable<LeaseGroup>;
  /** Locks the first of the keys that is free. */
  any(keys: readonly string[]): Lockable<Lease>;
  /** One leader among any number of candidates: `for await (const term of locks.elect(key)) …`. */
  elect(key: string, options?: ElectOptions): Election;
  /**
   * Finds the value with `get`, or creates it, once for all processes, under the lock. Calls for the same key on these
   * locks share one flight: the functions of the first call, and its result or its error. `wait` is how long to wait while
   * others look or create.
   */
  getOrCreate<T extends NonNullable<unknown>>(key: string, options: GetOrCreateOptions<T>): Promise<T>;
  /**
   * Continues a lease from its `lease.handoff()` string, with the same token, and renews it. Rejects with `LeaseLostError`
   * when it is over. After a `StoreError`, try again until the ttl ends it.
   */
  adopt(handoff: string, options?: AdoptOptions): Promise<Lease>;
  /** The lease that is held here, for code that knows only the key. The oldest, if there are several. */
  held(key: string): Lease | undefined;
  /** All leases that are held here. */
  leases(): Lease[];
  /** Reads the holders and waiters of a key; null when there are none. */
  inspect(key: string): Promise<KeyInfo | null>;
  /** Yields the keys with holders or waiters, in the order of their code points. */
  list(options?: ListOptions): AsyncIterable<KeyInfo>;
  /** Yields a change for each key in use now, and then every change that a read finds. */
  watch(options?: WatchOptions): AsyncIterable<KeyChange>;
  /**
   * Ends the leases of the key's holders; resolves to their number. Waiters stay, and the next one gets the lock. If a
   * reply of the store is lost, the command is sent again, and the number may be 0 although leases were ended.
   */
  evict(key: string, options?: EvictOptions): Promise<number>;
  /** Adds a listener. Returns a function that removes it. */
  on<N extends LockEventName>(event: N, listener: (detail: LockEvents[N]) => void): () => void;
  /** Asks the store what it guarantees as it is configured. */
  probe(): Promise<Guarantees>;
  /**
   * Waits until every lease held now is over. Leases still held after `drain` are lost for their holders, then released at
   * the store. New leases can be acquired meanwhile.
   */
  releaseAll(options?: DrainOptions): Promise<void>;
  /**
   * Refuses new leases, ends all waiting, then does as `releaseAll`. Closes the store unless other locks use it: a store
   * is closed with the last `createLocks` on it. If it is called again while it drains, the shorter drain counts.
   */
  close(options?: DrainOptions): Promise<void>;
  /**
   * Closes at SIGTERM or SIGINT, and then lets the signal end the process. Other listeners of the signal end it instead. A
   * second signal does not wait for the drain. Returns a function that ends this.
   */
  closeOn(process: SignalSource, options?: DrainOptions): () => void;
}

/** The part of `process` that `closeOn` needs. */
export interface SignalSource {
  /** The process that `kill` ends. */
  readonly pid: number;
  /** As of `process`. */
  prependListener(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  /** As of `process`. */
  off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  /** As of `process`. */
  listenerCount(signal: 'SIGTERM' | 'SIGINT'): number;
  /** As of `process`. */
  kill(pid: number, signal: 'SIGTERM' | 'SIGINT'): unknown;
}

/** Options of `close`, `releaseAll` and `closeOn`. */
export interface DrainOptions {
  /** How long running work may keep its leases. Default 5 s; 0 ends them at once. */
  readonly drain?: Duration;
}

/** Options of `createLocks`. */
export interface LocksOptions {
  /** Keeps the keys of different users of one store apart. Default `default`. */
  readonly namespace?: string;
  /** The caller's name, for people to read. Default `host:pid`. */
  readonly owner?: string;
  /** The ttl of calls that name none. Default 30 s. */
  readonly ttl?: Duration;
  /** The `wait` of `acquire` and `withLock` calls that name none. Default 10 s. The try verbs do not use it. */
  readonly wait?: Duration;
}
