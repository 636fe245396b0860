/** What a caller of the library asks for. */
import type { Request } from '../queue/request.js';

export interface LeaseRequest extends Request {
  /** Whether the lease renews itself. */
  readonly renew: boolean;
  /** How long a lease lives at most. */
  readonly maxHoldMs: number;
  /** Whether every lease has a hold of its own, so that whoever reads the key sees its token. Default false. */
  readonly ownHold?: boolean;
}

/** The ttl that a renewal asks for. Where the caller wanted no renewals it only asks: an expiry never moves back. */
export function renewalTtlMs({ renew, ttlMs }: LeaseRequest): number {
  return renew ? ttlMs : 1;
}
