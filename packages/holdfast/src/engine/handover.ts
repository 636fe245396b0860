/**
 * Whether a hold may pass to the next of the same process in memory: microseconds instead of two round trips.
 * Only like goes to like, only while it is certain to last, and only until others have waited their share.
 */
import { HANDOVER_ALONE_MS, HANDOVER_MS } from '../protocol/constants.js';
import type { Traits } from '../protocol/store.js';
import type { Hold } from './hold.js';
import { isExclusive, type Request } from './request.js';

/** Pass it on now; renew it first; or give it back to the store. */
export type Passing = 'now' | 'renew' | 'release';

/** Whether holds of this kind are ever handed over. */
export function canBeHandedOver(request: Request): boolean {
  return isExclusive(request) && request.renew && request.metadata === null && request.minHoldMs === 0;
}

/** Whether the next may have what this hold's claim got. */
export function fitsNext(hold: Hold, next: Request): boolean {
  const { request, stretched } = hold;
  return (
    !stretched &&
    canBeHandedOver(next) &&
    request.ttlMs === next.ttlMs &&
    request.owner === next.owner &&
    request.capacity === next.capacity
  );
}

/** Whether a store brings hints to waiters that it keeps in line. */
export function callsWaiters({ queue, push }: Traits): boolean {
  return queue && push;
}

/** `sinceMs`: when the hold began to pass within this process. */
export function howToPass(hold: Hold, next: Request, sinceMs: number): Passing {
  if (!fitsNext(hold, next) || isTurnOfOthers(hold, sinceMs)) return 'release';
  const isFresh = hold.remainingMs >= hold.request.ttlMs / 2 && hold.tokensLeft > 0;
  if (isFresh && !hold.suspect && !hold.renewal.inJeopardy) return 'now';
  return hold.othersSinceMs === null ? 'renew' : 'release';
}

function isTurnOfOthers({ core, othersSinceMs }: Hold, sinceMs: number): boolean {
  const nowMs = core.clock.monotonicMs();
  if (!callsWaiters(core.store.traits)) return nowMs - sinceMs >= HANDOVER_ALONE_MS;
  return othersSinceMs !== null && nowMs - othersSinceMs >= Math.max(HANDOVER_MS, 2 * core.roundTripMs);
}
