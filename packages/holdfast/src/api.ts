/** The public shapes: what a user gives and gets. Types only. */
import type { Guarantees } from './protocol/store.js';

/** Milliseconds, or a number with a unit: '500ms', '30s', '5m', '1h'. */
export type Duration = number | `${number}ms` | `${number}s` | `${number}m` | `${number}h`;

/** Anything JSON can hold. Shown to whoever inspects the key. */
export type Metadata = { readonly [name: string]: unknown };

export interface AcquireOptions {
  /** How long the grant lives without renewal. 30 s unless told. */
  readonly ttl?: Duration;
  /** How long to wait for the lock. 10 s for `acquire` and `withLock`, 0 for `tryAcquire`, unless told. */
  readonly wait?: Duration;
  /** Gives up waiting; rejects with the signal's reason. It does not end a lease. */
  readonly signal?: AbortSignal;
  /** Who asks, for people to read. `host:pid` unless told. */
  readonly owner?: string;
  readonly metadata?: Metadata;
  /** Whether the lease renews itself until released. On unless told. */
  readonly renew?: boolean;
  /** However early it is released, nobody gets the key sooner than so long after the grant. */
  readonly minHold?: Duration;
  /** Whether to stand in the store's line, where it has one. On unless told. Off, it polls, and others may come first. */
  readonly queue?: boolean;
}

export interface AdoptOptions {
  /** How long the lease lives without renewal from now on. What it was taken with, unless told. */
  readonly ttl?: Duration;
}

export interface SharedOptions extends AcquireOptions {
  /** How many permits to take. 1 unless told. */
  readonly permits?: number;
}

/** `held`, then one of the others for ever. */
export type LeaseState = 'held' | 'released' | 'lost' | 'handed-off';

/** A turn on a lock. Over when released, lost or handed off; `signal` aborts when it is lost. */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  /** The fencing token: greater than that of every earlier lease of this key. */
  readonly token: number;
  readonly owner: string;
  readonly metadata: Metadata | undefined;
  /** By the store's clock. */
  readonly acquiredAt: Date;
  /** By the store's clock, as last heard of. */
  readonly expiresAt: Date;
  /** Aborted with a `LeaseLostError` at the moment the lease is lost. Never by a release or a handoff. */
  readonly signal: AbortSignal;
  readonly state: LeaseState;
  /** Reads the clocks on every call: right even after a pause, before any timer ran. */
  readonly held: boolean;
  /** How long it is certain to be held without another renewal; 0 when it is over. */
  readonly remainingMs: number;
  /** Throws `LeaseLostError` unless held at this moment. Call it right before what must not happen twice. */
  assertHeld(): void;
  /** Renews now; with a ttl, to at least so long from now. Rejects with `LeaseLostError` if the lease is lost. */
  renew(ttl?: Duration): Promise<void>;
  /** Ends the lease. Never rejects because it was lost or released before; `StoreError` when nobody answered. */
  release(): Promise<void>;
  /**
   * Ends the lease here without ending the lock, and gives what `locks.adopt` needs to go on with it in another process,
   * before the ttl is over. Whoever has the string can hold the lock: keep it secret, and adopt it once. Rejects with
   * `LeaseLostError` when the lease is over, with `StoreError` when nobody answered: the lease is then still here.
   */
  handoff(): Promise<string>;
}

/** Several leases taken as one: held while all are. */
export interface LeaseGroup extends AsyncDisposable {
  readonly leases: readonly Lease[];
  /** Aborted when any of them is lost. */
  readonly signal: AbortSignal;
  readonly held: boolean;
  assertHeld(): void;
  release(): Promise<void>;
}

/** The three verbs. Everything that can be locked has them. */
export interface Lockable<L, O extends AcquireOptions = AcquireOptions> {
  /** Waits, then rejects with `AcquireTimeoutError`. */
  acquire(options?: O): Promise<L>;
  /** Null when it was not to be had. Never waits unless told. */
  tryAcquire(options?: O): Promise<L | null>;
  /**
   * Runs work under the lock. Work that resolves after the lease was lost rejects with `LeaseLostError`, whose
   * `result` has the value; work that throws, throws its own error; a failed release changes neither.
   */
  withLock<T>(work: (lease: L) => Promise<T> | T, options?: O): Promise<T>;
}

export interface ReadWrite {
  /** Shared with other readers. */
  readonly read: Lockable<Lease>;
  /** Alone. Readers that come later wait behind a waiting writer. */
  readonly write: Lockable<Lease>;
}

export interface HolderInfo {
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly token: number;
  readonly acquiredAt: Date;
  readonly expiresAt: Date;
  readonly metadata: Metadata | undefined;
  /** Released inside its `minHold`: the key rests until `expiresAt`. */
  readonly resting: boolean;
}

export interface WaiterInfo {
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly since: Date;
}

/** Who holds a key, and who stands in line, in order. */
export interface KeyInfo {
  readonly key: string;
  /** The store's time of this view. */
  readonly now: Date;
  readonly holders: readonly HolderInfo[];
  readonly waiters: readonly WaiterInfo[];
}

export interface ListOptions {
  readonly prefix?: string;
  readonly limit?: number;
  /** Only keys that sort behind this one, whether it is in use or not: to go on after the last key of a page. */
  readonly after?: string;
}

export interface WatchOptions {
  readonly prefix?: string;
  /** How often to look. 500 ms unless told. */
  readonly every?: Duration;
  readonly signal?: AbortSignal;
}

export interface EvictOptions {
  /** Only holders with this token or a lower one: those that the operator saw, and nobody who came since. */
  readonly upToToken?: number;
}

/** What `watch` yields: a key that came into use, changed, or is free again (`info` is then its last view). */
export interface KeyChange {
  readonly kind: 'appeared' | 'changed' | 'gone';
  readonly info: KeyInfo;
}

interface EventBase {
  readonly key: string;
  readonly owner: string;
}

export interface LockEvents {
  /** A lease began. `waitedMs` from the call; `handedOver` when it came from another lease of this process. */
  acquired: EventBase & { readonly token: number; readonly waitedMs: number; readonly handedOver: boolean };
  /** Somebody else holds the key and this caller waits. Once a call. */
  contended: EventBase & { readonly holders: readonly string[]; readonly waitedMs: number };
  /**
   * A call ended without a lease. Every call ends in one `acquired` or one `not-acquired` per key asked for. `busy`: held
   * by others for as long as the caller would wait, not at all for `tryAcquire`; `failed`: `cause` is the error;
   * `aborted`: `cause` is the reason of the caller's signal.
   */
  'not-acquired': EventBase & {
    readonly reason: 'busy' | 'failed' | 'aborted';
    readonly holders: readonly string[];
    readonly waitedMs: number;
    readonly cause: unknown;
  };
  renewed: EventBase & { readonly token: number; readonly remainingMs: number };
  /** A renewal went unanswered; retried until the deadline, `remainingMs` from now. */
  jeopardy: EventBase & { readonly token: number; readonly remainingMs: number; readonly cause: unknown };
  lost: EventBase & { readonly token: number; readonly heldMs: number; readonly reason: string };
  released: EventBase & { readonly token: number; readonly heldMs: number };
  /** Another process may go on with the lease; it is over here. */
  'handed-off': EventBase & { readonly token: number; readonly heldMs: number };
  /** A lease that was handed off goes on here. */
  adopted: EventBase & { readonly token: number; readonly remainingMs: number };
}

export type LockEventName = keyof LockEvents;

/** Locks on one store, under one namespace. */
export interface Locks {
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  tryAcquire(key: string, options?: AcquireOptions): Promise<Lease | null>;
  withLock<T>(key: string, work: (lease: Lease) => Promise<T> | T, options?: AcquireOptions): Promise<T>;
  /** `capacity` permits to be had at once. All users of a key should name the same capacity; the smallest counts. */
  semaphore(key: string, options: { readonly capacity: number }): Lockable<Lease, SharedOptions>;
  readWrite(key: string): ReadWrite;
  /** All of the keys or none, taken in one order everywhere, so that two such calls never deadlock. */
  all(keys: readonly string[]): Lockable<LeaseGroup>;
  /** Whichever of the keys is to be had first. */
  any(keys: readonly string[]): Lockable<Lease>;
  /**
   * Goes on with a lease that `lease.handoff()` gave away: same token, renewed from here. `LeaseLostError` when it is
   * over. After a `StoreError` it may be tried again, until the ttl ends it.
   */
  adopt(handoff: string, options?: AdoptOptions): Promise<Lease>;
  /** Null when nobody holds the key and nobody waits for it. */
  inspect(key: string): Promise<KeyInfo | null>;
  /** Keys that somebody holds or waits for, in the order of their code points. */
  list(options?: ListOptions): AsyncIterable<KeyInfo>;
  watch(options?: WatchOptions): AsyncIterable<KeyChange>;
  /** Ends whatever holds the key now; resolves to how many holders were ended. Those who wait go on. */
  evict(key: string, options?: EvictOptions): Promise<number>;
  /** Returns a function that unsubscribes. */
  on<N extends LockEventName>(event: N, listener: (detail: LockEvents[N]) => void): () => void;
  /** What this store, as configured, really promises. */
  probe(): Promise<Guarantees>;
  /**
   * Waits until every lease held now is over; those still held after `drain` are lost to their holders, and then given
   * back to the store. New leases can be acquired all the while.
   */
  releaseAll(options?: DrainOptions): Promise<void>;
  /**
   * Refuses new leases, ends all waiting, then does as `releaseAll`. Closes the store unless other locks use it: a store
   * is closed with the last `createLocks` on it. Called again while it drains, the shorter drain counts.
   */
  close(options?: DrainOptions): Promise<void>;
}

export interface DrainOptions {
  /** How long running work may keep its leases. Default 5 s; 0 ends them at once. */
  readonly drain?: Duration;
}

export interface LocksOptions {
  /** Keeps the keys of different users of one store apart. `default` unless told. */
  readonly namespace?: string;
  /** Who asks, for people to read. `host:pid` unless told. */
  readonly owner?: string;
  /** Defaults for every call. */
  readonly ttl?: Duration;
  readonly wait?: Duration;
}
