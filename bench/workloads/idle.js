/**
 * What waiters cost while nothing happens: how often the store is asked and how much processor time goes by,
 * first with one waiter on a key that somebody else holds, then with all of them.
 */
import { setTimeout as sleep } from 'node:timers/promises';

const SETTLE_MS = 300;

/** @typedef {import('../types.d.ts').Session} Session */

/**
 * @param {Session} session
 * @param {import('../types.d.ts').Task} task
 * @returns {Promise<import('../types.d.ts').Answer>}
 */
export async function idle(session, { sizes }) {
  const { waiters, idleMs } = sizes;
  const { holdApart, wait } = session;
  if (!holdApart || !wait) throw new Error('This contender does not wait.');
  await holdApart('idle');
  const waiting = [ignoringTheEnd(wait('idle'))];
  const one = await costOf(session, idleMs);
  while (waiting.length < waiters) waiting.push(ignoringTheEnd(wait('idle')));
  const all = await costOf(session, idleMs);
  return {
    figures: {
      callsPerSecondOfOne: one.callsPerSecond,
      callsPerSecondOfAll: all.callsPerSecond,
      cpuShareOfOne: one.cpuShare,
      cpuShareOfAll: all.cpuShare,
    },
  };
}

/** Waiters are ended by closing the session; a grant would mean that the holder was lost. @param {Promise<unknown>} waiter */
function ignoringTheEnd(waiter) {
  return waiter.then(
    () => Promise.reject(new Error('A waiter got the key although it is held.')),
    () => undefined,
  );
}

/** @param {Session} session @param {number} idleMs */
async function costOf(session, idleMs) {
  await sleep(SETTLE_MS);
  const callsBefore = session.storeCalls?.() ?? 0;
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await sleep(idleMs);
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    callsPerSecond: (((session.storeCalls?.() ?? 0) - callsBefore) / elapsedMs) * 1_000,
    cpuShare: (user + system) / 1_000 / elapsedMs,
  };
}
