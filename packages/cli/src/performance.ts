/**
 * Replaces Node's global `performance` in the published command, with the same clock and origin. For the global one, Node
 * loads a dozen modules of its own, which takes longer than acquiring a lock.
 */
const startedNs = process.hrtime.bigint();
const NS_PER_MS = 1e6;

export const performance = {
  timeOrigin: Date.now(),
  now: (): number => Number(process.hrtime.bigint() - startedNs) / NS_PER_MS,
};
