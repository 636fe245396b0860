/**
 * Whether a hold may pass to the next of the same process in memory: microseconds instead of two round trips.
 * Only like goes to like, only while it is certain to last, and only until others have waited their share.
 */
import { HANDOVER_ALONE_MS, HANDOVER_MS } from '../protocol/constants.js';
import type { Hold } from './hold.js';
import { isExclusive, type Request } from './request.js';

/** Pass it on now; renew it first; give it back to the store; or give it back because it is the turn of others. */
export type Passing = 'now' | 'renew' | 'release' | 'yield';

/** Whether holds of this kind are ever handed over. */
export function canBeHandedOver(request: Request): boolean {
  return isExclusive(request) && request.renew && request.metadata === null && request.minHoldMs === 0;
}

/** Whether the next may have what this hold's claim got. */
export function fitsNext(hold: Hold, next: Request): boolean {
  const { request, apart } = hold;
  return (
    !apart &&
    canBeHandedOver(next) &&
    request.ttlMs === next.ttlMs &&
    request.owner === next.owner &&
    request.capacity === next.capacity
  );
}

/** `sinceMs`: when the hold began to pass within this process. */
export function howToPass(hold: Hold, next: Request, sinceMs: number): Passing {
  if (!fitsNext(hold, next)) return 'release';
  if (isTurnOfOthers(hold, sinceMs)) return 'yield';
  const isFresh = hold.remainingMs >= hold.request.ttlMs / 2 && hold.tokensLeft > 0;
  if (isFresh && !hold.suspect && !hold.renewal.inJeopardy) return 'now';
  return hold.othersSinceMs === null ? 'renew' : 'release';
}

function isTurnOfOthers({ core, othersSinceMs }: Hold, sinceMs: number): boolean {
  const nowMs = core.clock.monotonicMs();
  if (!core.callsWaiters()) return nowMs - sinceMs >= HANDOVER_ALONE_MS;
  return othersSinceMs !== null && nowMs - othersSinceMs >= Math.max(HANDOVER_MS, 2 * core.roundTripMs);
}
