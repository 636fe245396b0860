/** Upper bounds of the buckets of histograms, in seconds. */

/** From an uncontended lock in memory to a long wait. The same as the lock service's. */
export const WAIT_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
export const HOLD_SECONDS = [0.001, 0.01, 0.1, 1, 5, 15, 30, 60, 300, 900, 3_600, 21_600, 86_400];
/** A renewal is due after a third of the ttl, and the lease is lost two thirds later. */
export const LATE_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];
