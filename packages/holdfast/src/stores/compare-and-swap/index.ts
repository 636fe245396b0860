/** For engines with compare-and-swap: what they offer, and the store that comes of it. */
export { CompareAndSwap, type CompareAndSwapOptions } from './adapter.js';
export { LINE_MAX } from './crowd.js';
export type { Found, Reading, Register, StoreTime, Written } from './register.js';
export { TimeEstimate } from './time-estimate.js';
