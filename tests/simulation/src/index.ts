/** The simulated world: the real engine in virtual time, over a simulated network and store, from a seed. */
export type { Profile } from './profile.js';
export { PROFILES } from './profiles.js';
export { type RunOptions, runWorld } from './run.js';
export { type Output, simulate } from './simulate.js';
export type { FaultKind, Tally, Violation } from './tally.js';
