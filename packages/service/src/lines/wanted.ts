/** What a client wants to acquire, and what comes of it. */
import type { UnsupportedError } from 'holdfast';
import type { Busy, Claim, Granted, HoldId } from 'holdfast/protocol';

export interface Wanted {
  readonly key: string;
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly ttlMs: number;
  /** 0: asked once. */
  readonly waitMs: number;
  /** Stand in the store's line. */
  readonly queue: boolean;
  readonly metadata: string | null;
  readonly minHoldMs: number;
  /**
   * The client's own; null: one is made here. Whoever brings a hold may be asking with it elsewhere at this moment, or
   * again soon, so the service never takes such a hold back. A hold made here is known to nobody until the answer
   * arrives: whatever keeps it from arriving takes the claim back.
   */
  readonly hold: HoldId | null;
}

export type Outcome =
  /** `sentMs`: the moment, by the monotonic clock, before the attempt that was answered. */
  | { readonly kind: 'granted'; readonly hold: HoldId; readonly reply: Granted; readonly sentMs: number }
  | { readonly kind: 'busy'; readonly reply: Busy }
  /** Nobody knows whether it was granted. */
  | { readonly kind: 'unknown'; readonly cause: unknown }
  /** The client's hold has been released, evicted or has expired before. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'refused'; readonly error: UnsupportedError }
  /** A later request with the same hold stands in its place. */
  | { readonly kind: 'superseded' }
  /** As many wait here as may. */
  | { readonly kind: 'full' }
  | { readonly kind: 'closing' }
  /** The client went away. */
  | { readonly kind: 'gone' };

export function claimOf(wanted: Wanted, hold: HoldId, queue: boolean, inbox: string | null): Claim {
  const { key, owner, permits, capacity, ttlMs, metadata } = wanted;
  return { kind: 'claim', key, hold, owner, permits, capacity, ttlMs, queue, inbox, metadata };
}

export function isShared({ permits, capacity }: Wanted): boolean {
  return permits < capacity;
}

/** Whether one may stand where the other stood, as far as anybody at the store can see. */
export function areAlike(a: Wanted, b: Wanted): boolean {
  return (
    a.permits === b.permits && a.capacity === b.capacity && a.owner === b.owner && a.minHoldMs === b.minHoldMs
  );
}
