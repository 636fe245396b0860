/** The simulation: the real engine in virtual time, over a simulated network and store, from a seed. */
export type { Profile } from './profile.js';
export { PROFILES } from './profiles.js';
export { type RunOptions, runSimulation } from './run.js';
export type { FaultKind, RunResult, Violation } from './run-result.js';
export { type Output, simulate } from './simulate.js';
