/** What a caller asks for, checked and frozen at the door. */

export interface Request {
  /** As the store knows it. */
  readonly key: string;
  /** As the caller wrote it, in Unicode's normal form. */
  readonly name: string;
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly queue: boolean;
  readonly renew: boolean;
  readonly minHoldMs: number;
  readonly metadata: string | null;
  readonly signal: AbortSignal | undefined;
}

export function isExclusive({ permits, capacity }: Request): boolean {
  return permits === capacity;
}

/** What a renewal asks for. Only a question, where the caller wanted no renewals: an expiry never moves back. */
export function askTtlMs({ renew, ttlMs }: Request): number {
  return renew ? ttlMs : 1;
}

/** Whether one's claim serves the other: a place in line, or a grant, may pass between them. */
export function areAlike(a: Request, b: Request): boolean {
  return (
    a === b ||
    (a.permits === b.permits &&
      a.capacity === b.capacity &&
      a.ttlMs === b.ttlMs &&
      a.owner === b.owner &&
      a.metadata === b.metadata &&
      a.queue === b.queue &&
      a.waitMs > 0 === b.waitMs > 0)
  );
}
