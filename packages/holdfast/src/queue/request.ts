/** The checked request of a caller. */
import type { Claim } from '../protocol/commands.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { show } from '../protocol/names.js';
import type { HoldId } from '../protocol/state.js';

const CAPACITY_MAX = 1_000_000;

export interface Permits {
  readonly permits: number;
  readonly capacity: number;
}

/** A mutex: the only permit there is. */
export const ALONE: Permits = { permits: 1, capacity: 1 };

export function checkPermits(permits: unknown, capacity: unknown): Permits {
  if (!isCount(capacity)) {
    throw new InvalidArgumentError(
      `capacity is ${show(capacity)}, but has to be a whole number from 1 to ${CAPACITY_MAX}.`,
    );
  }
  if (!isCount(permits) || permits > capacity) {
    throw new InvalidArgumentError(
      `permits is ${show(permits)}, but has to be a whole number from 1 to the capacity, ${capacity}.`,
    );
  }
  return { permits, capacity };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= CAPACITY_MAX;
}

/** A call that wants a key: its owner, its ttl, and how long it waits. */
export interface Request extends Permits {
  /** As the store knows it. */
  readonly key: string;
  /** As the caller wrote it, for messages. */
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Whether to queue at the store. */
  readonly queue: boolean;
  readonly minHoldMs: number;
  readonly metadata: string | null;
  readonly signal: AbortSignal | undefined;
  /**
   * The caller's own hold; null: the queue makes one. The caller may use its own hold elsewhere now, or again soon, so the
   * queue never withdraws it. A hold that the queue made is known to nobody else, and is withdrawn when nobody waits for
   * it any more.
   */
  readonly hold: HoldId | null;
}

/** `queue`: whether it takes a place in the store's queue. `inbox`: where wake-ups for it go. */
export function claimOf(request: Request, hold: HoldId, queue: boolean, inbox: string | null): Claim {
  const { key, owner, permits, capacity, ttlMs, metadata } = request;
  return { kind: 'claim', key, hold, owner, permits, capacity, ttlMs, queue, inbox, metadata };
}

export const isExclusive = ({ permits, capacity }: Permits): boolean => permits === capacity;

/** Whether a claim for one serves the other: a place in the queue, or a grant, may pass between them. */
export const areAlike = (a: Request, b: Request): boolean =>
  a === b ||
  (a.permits === b.permits &&
    a.capacity === b.capacity &&
    a.ttlMs === b.ttlMs &&
    a.owner === b.owner &&
    a.metadata === b.metadata &&
    a.minHoldMs === b.minHoldMs &&
    a.queue === b.queue &&
    a.waitMs > 0 === b.waitMs > 0 &&
    a.hold === null &&
    b.hold === null);

/** Whether a place in the store's queue may pass from one to the other. The next claim has the heir's ttl and metadata. */
export const canInherit = (from: Request, heir: Request): boolean =>
  from.permits === heir.permits &&
  from.capacity === heir.capacity &&
  from.owner === heir.owner &&
  from.minHoldMs === heir.minHoldMs &&
  from.hold === null &&
  heir.hold === null &&
  heir.queue;

/** Whether both may claim at the same time: readers, or permits of one semaphore. */
export const areShared = (a: Permits, b: Permits): boolean =>
  a.permits < a.capacity && a.permits === b.permits && a.capacity === b.capacity;
