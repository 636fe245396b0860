/**
 * Takes the place of Node's global `performance` in the published command: for that one, Node loads a dozen modules
 * of its own, which takes longer than acquiring a lock. Same clock, same origin.
 */
const startedNs = process.hrtime.bigint();
const NS_PER_MS = 1e6;

export const performance = {
  timeOrigin: Date.now(),
  now: (): number => Number(process.hrtime.bigint() - startedNs) / NS_PER_MS,
};
