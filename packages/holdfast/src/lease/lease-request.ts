/** The request of a caller of the library. */
import type { Request } from '../queue/request.js';

export interface LeaseRequest extends Request {
  /** Whether the lease renews itself. */
  readonly renew: boolean;
  /** The longest that a lease may live. */
  readonly maxHoldMs: number;
  /** Whether every lease has a hold of its own, so that readers of the key see its token. Default false. */
  readonly ownHold?: boolean;
}

/**
 * The ttl that a renewal asks for. Without renewals, 1 ms: such a command extends nothing, because an expiry never moves
 * back.
 */
export function renewalTtlMs({ renew, ttlMs }: LeaseRequest): number {
  return renew ? ttlMs : 1;
}
