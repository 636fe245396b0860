/** How long a reply makes a grant certain. */
import { DRIFT_MS, DRIFT_SHARE } from '../protocol/constants.js';

export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * The last moment at which a grant is certain, by each clock. Counted from before the answered attempt was sent (F2),
 * by what the reply grants and never by the ttl asked for: a repeated grant may be nearly over (F26).
 */
export function validityOf(
  sent: Moment,
  reply: { readonly now: number; readonly expiresAt: number },
): Moment {
  const grantedMs = reply.expiresAt - reply.now;
  const certainMs = grantedMs - grantedMs * DRIFT_SHARE - DRIFT_MS;
  return { monotonicMs: sent.monotonicMs + certainMs, wallMs: sent.wallMs + certainMs };
}
