/**
 * This contract counts whole epoch seconds, and the second that a lock's `expiry` names still belongs to it. The store
 * counts milliseconds. So a lock of this contract ends, at the store, with the last millisecond of that second.
 */
import { type HolderView, type Snapshot, TOKEN_BLOCK } from 'holdfast/protocol';

export function secondOf(ms: number): number {
  return Math.floor(ms / 1_000);
}

/** When a lock is over whose last second this is. */
export function endOf(expiry: number): number {
  return (expiry + 1) * 1_000;
}

/** The last second of which a part belongs to a lock. */
export function expiryOf(expiresAt: number): number {
  return Math.ceil(expiresAt / 1_000) - 1;
}

/**
 * The second in which an exclusive lock was acquired last. A claim reserves a block of tokens; so does the renewal that
 * overwrites a lease, and blocks begin at the store's microsecond. Nothing else moves the highest token while it is held.
 */
export function acquireSecondOf({ token }: Snapshot, holder: HolderView): number {
  const blockBegin = token - (TOKEN_BLOCK - 1);
  return holder.token === blockBegin ? secondOf(holder.acquiredAt) : secondOf(blockBegin / 1_000);
}
