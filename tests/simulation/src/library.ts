/**
 * The built library as the simulation uses it. `openLocks`, which takes a clock, is not public: this file reaches it by
 * its path, so that the simulation runs the published code, or a copy of it with a planted bug.
 */
export type { Lease, Lockable, Locks, SharedOptions } from '../../../packages/holdfast/dist/api.js';
export { type Clock, systemClock, type Timer } from '../../../packages/holdfast/dist/clock.js';
export { openLocks } from '../../../packages/holdfast/dist/locks.js';
export * from '../../../packages/holdfast/dist/protocol/index.js';
export { seededRandom } from '../../../packages/holdfast/dist/testkit/random.js';
