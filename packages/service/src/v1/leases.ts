/** Locks as the routes need them: kept as holds on most stores, as instances on some. */
import type { HoldId } from 'holdfast/protocol';
import type { Identity } from './identity.js';

export interface Lease {
  /** The hold under which the lease is counted. */
  readonly hold: HoldId;
  /** Seconds, with all renewals. */
  readonly leaseDuration: number;
  readonly expiry: number;
}

export interface Look {
  readonly owner: string;
  /** The last second of the lock. */
  readonly expiry: number;
}

/** Limit of a lease. */
export interface Bound {
  /** Throws when it is longer. */
  check(ttlMs: number): void;
  readonly ttlMsMax: number;
}

export interface Leases {
  /** Null when nobody holds it. */
  look(key: string): Promise<Look | null>;
  /** The hold of this identity; null when the lock is free, or another's. */
  holdOf(who: Identity): Promise<HoldId | null>;
  /** Null when another holds it. */
  acquire(who: Identity, seconds: number): Promise<Lease | null>;
  /** Null when it is free, or another's. */
  renew(who: Identity, seconds: number, bound: Bound): Promise<Lease | null>;
  /** The hold that ended; null when there was nothing to end. False when another holds the lock. */
  release(who: Identity): Promise<HoldId | null | false>;
}
