/**
 * The built library as the simulation uses it. `openLocks`, which takes a clock, is not public: this file reaches it by
 * its path, so that the simulation runs the published code, or a copy of it with a planted bug.
 */
export type { Lease, Lockable, Locks, SharedOptions } from '../../../packages/holdfast/dist/api.js';
export { type Clock, systemClock, type Timer } from '../../../packages/holdfast/dist/clock.js';
export { openLocks } from '../../../packages/holdfast/dist/locks.js';
export * from '../../../packages/holdfast/dist/protocol/index.js';
export {
  CompareAndSwap,
  type Register,
} from '../../../packages/holdfast/dist/stores/compare-and-swap/index.js';
export {
  type Accept,
  type Ballot,
  compareBallots,
  type Member,
  type MemberReply,
  type Request,
} from '../../../packages/holdfast/dist/stores/quorum/member.js';
export { Quorum } from '../../../packages/holdfast/dist/stores/quorum/quorum.js';
export { QuorumRegister, type Version } from '../../../packages/holdfast/dist/stores/quorum/register.js';
export { seededRandom } from '../../../packages/holdfast/dist/testkit/random.js';
