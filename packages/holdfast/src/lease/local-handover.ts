/**
 * Whether a hold may pass to the next waiter of the same process in memory: microseconds instead of two round trips. Only
 * between like requests, only while the hold is certain to last, and only until other processes have waited their share.
 */
import { HANDOVER_ALONE_MS, HANDOVER_MS } from '../protocol/constants.js';
import { isExclusive } from '../queue/request.js';
import type { Hold } from './hold.js';
import type { LeaseRequest } from './lease-request.js';

/** Hand it over now; renew it first; release it; or release it because it is the turn of other processes. */
export type Passing = 'now' | 'renew' | 'release' | 'yield';

/** Whether holds of this kind are ever handed over. */
export const canBeHandedOver = (request: LeaseRequest): boolean =>
  isExclusive(request) &&
  request.renew &&
  request.metadata === null &&
  request.minHoldMs === 0 &&
  request.ownHold !== true;

/** Whether this hold is what the next waiter asks for. */
export function fitsNext(hold: Hold, next: LeaseRequest): boolean {
  const { request, isApart } = hold;
  return (
    !isApart &&
    canBeHandedOver(next) &&
    request.ttlMs === next.ttlMs &&
    request.owner === next.owner &&
    request.capacity === next.capacity &&
    request.maxHoldMs === next.maxHoldMs
  );
}

export function howToPass(hold: Hold, next: LeaseRequest): Passing {
  if (!fitsNext(hold, next)) return 'release';
  if (isTurnOfOthers(hold)) return 'yield';
  const isFresh = hold.remainingMs >= hold.request.ttlMs / 2 && hold.tokensLeft > 0;
  if (isFresh && !hold.suspect && !hold.inJeopardy) return 'now';
  return hold.othersSinceMs === null ? 'renew' : 'release';
}

function isTurnOfOthers({ client, sinceMs, othersSinceMs }: Hold): boolean {
  const nowMs = client.clock.monotonicMs();
  if (!client.wakes.wakesWaiters()) return nowMs - sinceMs >= HANDOVER_ALONE_MS;
  return othersSinceMs !== null && nowMs - othersSinceMs >= Math.max(HANDOVER_MS, 2 * client.roundTripMs);
}
