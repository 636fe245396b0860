/** How long a reply makes a grant certain, and the two clocks that say when that is over. */
import type { Clock } from '../clock.js';
import { DRIFT_MS, DRIFT_SHARE } from '../protocol/constants.js';

export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** The last moment at which a grant is certain, by each clock. */
export type Validity = Moment;

/**
 * Counted from before the answered attempt was sent (F2), by what the reply grants and never by the ttl asked for:
 * a repeated grant may be nearly over (F26).
 */
export function validityOf(
  sent: Moment,
  reply: { readonly now: number; readonly expiresAt: number },
): Validity {
  const grantedMs = reply.expiresAt - reply.now;
  const certainMs = grantedMs - grantedMs * DRIFT_SHARE - DRIFT_MS;
  return { monotonicMs: sent.monotonicMs + certainMs, wallMs: sent.wallMs + certainMs };
}

/** Over when either clock says so: a suspended machine stops the monotonic one (F1, F11). */
export function remainingMs(validity: Validity, clock: Clock): number {
  const byMonotonic = validity.monotonicMs - clock.monotonicMs();
  const byWall = validity.wallMs - clock.wallMs();
  return Math.max(0, Math.min(byMonotonic, byWall));
}
