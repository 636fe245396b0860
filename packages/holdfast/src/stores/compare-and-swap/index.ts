/** For engines with compare-and-swap: the interface they implement, and the store made of it. */
export { CompareAndSwap, type CompareAndSwapOptions } from './compare-and-swap.js';
export { WAITERS_MAX } from './contention.js';
export type { Found, Reading, Register, StoreTime, Written } from './register.js';
export { type ClockOffset, type ClockReply, ServerClocks } from './server-clocks.js';
export { TimeEstimate } from './time-estimate.js';
