/** The clocks of every runtime: the part of clock.ts for code that also runs without Node. */

/** Never steps. */
export const monotonicMs = (): number => performance.now();

/** May be set by hand. */
export const wallMs = (): number => Date.now();
