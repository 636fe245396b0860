/** The clocks that every runtime has: the part of clock.ts for code that runs also where there is no Node. */

/** Never steps. */
export const monotonicMs = (): number => performance.now();

/** May be set by hand. */
export const wallMs = (): number => Date.now();
