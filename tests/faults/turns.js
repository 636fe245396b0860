/**
 * Turns on a key, and when each was really believed in: the raw material for saying that two held at once. Times are
 * the machine's monotonic clock, which all of its processes share and no test sets.
 */

/**
 * @typedef {object} Turn
 * @property {string} who
 * @property {number} token
 * @property {number} fromMs The first moment at which the lease is known to have called itself held.
 * @property {number} toMs The last such moment.
 */

/** @returns {number} */
export const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

/** @type {(ms: number) => Promise<void>} */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Looks every few milliseconds whether the lease is held, until `workMs` are over or it is not. The clock is read
 * before the lease is asked: what it says then was true at that moment too. Null when it was never held.
 *
 * @param {string} who
 * @param {import('holdfast').Lease} lease
 * @param {number} workMs
 * @param {(turn: Turn) => void} [began] Told at once: what a process does not live to say counts too.
 * @returns {Promise<Turn | null>}
 */
export async function workUnder(who, lease, workMs, began = () => undefined) {
  const fromMs = machineMs();
  if (!lease.held) return null;
  const turn = { who, token: lease.token, fromMs, toMs: fromMs };
  began(turn);
  while (turn.toMs < fromMs + workMs) {
    await sleep(3);
    const nowMs = machineMs();
    if (!lease.held) break;
    turn.toMs = nowMs;
  }
  return turn;
}
