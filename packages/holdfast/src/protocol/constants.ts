/**
 * The numbers that every port of the protocol shares. They were tuned together:
 * change one with a measurement and an ADR.
 */

/** The layout of a stored record. A library refuses records with a higher one. */
export const STATE_VERSION = 1;

/** A holder's safety margin: a share of the granted time, and a constant. */
export const DRIFT_SHARE = 0.01;
/** The fixed part of the drift margin, beside `DRIFT_SHARE`. */
export const DRIFT_MS = 5;

/** An attempt unanswered for this long is unknown; doubles with every further one, up to ttl / 4, and to 30 s. */
export const ATTEMPT_MS = 250;
/** The least that an attempt is awaited: one that is given up too early is sent again for nothing. */
export const ATTEMPT_MS_MIN = 50;

/** How long room is kept for a woken waiter. */
export const WINDOW_MS = 500;
/** A woken waiter that has not come is woken again after this long. */
export const NAME_AGAIN_MS = 50;
/** While a woken waiter is ahead, a busy reply asks the claimant to come back within this. */
export const WINDOW_HINT_MS = 100;

/** A waiter that does not claim for this long leaves the queue. */
export const WAITER_LIFE_MS = 5_000;
/** A claim extends its waiter only after this much of its life, so that most safety polls write nothing. */
export const WAITER_REFRESH_MS = 1_000;
/** The safety poll of a waiter: POLL_MS × (position + 1), at most POLL_MS_MAX. */
export const POLL_MS = 700;
/** The longest time between two polls of a waiter in the queue. */
export const POLL_MS_MAX = 2_000;
/** At most this many waiters queue; the rest poll. */
export const QUEUE_MAX = 128;

/** Tokens reserved with every grant of an exclusive hold. */
export const TOKEN_BLOCK = 1_024;

/** While other processes wait, a process hands over within itself for max(this, 2 × round trip). */
export const HANDOVER_MS = 20;
/** How long it hands over at a store without queue or push. Then it stays away for `STAY_AWAY_MS`. */
export const HANDOVER_ALONE_MS = 50;
/** How long a process does not claim after it gave up a key that it had handed over for `HANDOVER_ALONE_MS`. */
export const STAY_AWAY_MS = 150;

/** How long marks of ended holds, and records of released keys, are kept. */
export const KEEP_MS = 30_000;
/** At most this many marks per key; the oldest go first. */
export const MARKS_MAX = 128;
/** How long a store keeps an eviction at most, to tell the evicted holder. Its key takes the slower path meanwhile. */
export const EVICTION_MS = 600_000;
/** At most this many evictions per key; the oldest go first. */
export const EVICTIONS_MAX = 16;

/** A busy reply names at most this many holders. */
export const HOLDERS_SHOWN = 16;

/** The permits of a read-write lock: a reader takes one, a writer all. */
export const READ_WRITE_CAPACITY = 1_000_000;
