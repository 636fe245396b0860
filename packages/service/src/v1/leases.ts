/** Locks in the form for the routes. Most stores keep them as holds, some as instances. */
import { createHash } from 'node:crypto';
import type { HolderView, HoldId } from 'holdfast/protocol';

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
  /** Throws if the lease is longer. */
  check(ttlMs: number): void;
  readonly ttlMsMax: number;
}

export interface Leases {
  /** Null when nobody holds the lock. */
  look(key: string): Promise<Look | null>;
  /** The hold of this identity; null when the lock is free or held by another. */
  holdOf(who: Identity): Promise<HoldId | null>;
  /** Null when another holds the lock. */
  acquire(who: Identity, seconds: number): Promise<Lease | null>;
  /** Null when the lock is free or held by another. */
  renew(who: Identity, seconds: number, bound: Bound): Promise<Lease | null>;
  /** The hold that ended; null when there was nothing to end. False when another holds the lock. */
  release(who: Identity): Promise<HoldId | null | false>;
}

/**
 * A holder in this contract: an owner and an instance. An identity is used again, but a hold only once. So every grant has
 * a random salt, visible in its metadata, and its hold is a hash of identity and salt. Only a client that knows the
 * identity finds the hold again, through any process of the service.
 */
export interface Identity {
  readonly key: string;
  /** The name of an API key, or the subject of a JWT. Shown. */
  readonly owner: string;
  /** The principal: an API key and a JWT of the same name are different ones. */
  readonly principal: string;
  /** A secret of the client: never shown, never stored. */
  readonly instanceId: string;
}

const METADATA = /^\{"lockServiceCentral":"([A-Za-z0-9_-]{22})"\}$/;

/** `/v2` refuses holds with a colon, so these cannot be used there. */
export function holdOf({ key, principal, instanceId }: Identity, salt: string): HoldId {
  const digest = createHash('sha256').update(JSON.stringify([key, principal, instanceId, salt]));
  return { process: `v1:${digest.digest('base64url')}`, number: 1 };
}

export function metadataOf(salt: string): string {
  return JSON.stringify({ lockServiceCentral: salt });
}

/** Null for a lock that was not acquired through this contract. */
export function saltOf({ metadata }: HolderView): string | null {
  return METADATA.exec(metadata ?? '')?.[1] ?? null;
}
