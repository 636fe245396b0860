/**
 * Cycles a second: one loop on one key, 64 loops on 64 keys, 16 loops on one key, and the same 16 in four processes.
 * The contended ones turn the event loop once under the lock: without that, a library whose waiters
 * poll by timer would never see its timers fire, and no two contenders would ever meet.
 */
import { jainIndex } from '../figures.js';

const IN_FLIGHT = 64;
const CONTENDERS = 16;
const CONTENDERS_ACROSS = 4;

/** @typedef {import('../types.d.ts').Session} Session */
/** @typedef {import('../types.d.ts').Sizes} Sizes */

/** @param {Session} session @param {Sizes} sizes */
export async function sequential(session, sizes) {
  return rateOf([session.cycle('sequential', undefined)], sizes);
}

/** @param {Session} session @param {Sizes} sizes */
export async function inFlight(session, sizes) {
  const cycles = Array.from({ length: IN_FLIGHT }, (_, index) =>
    session.cycle(`in-flight:${index}`, undefined),
  );
  return rateOf(cycles, sizes);
}

/** @param {Session} session @param {Sizes} sizes */
export async function contended(session, sizes) {
  return contend(session, sizes, CONTENDERS);
}

/** What each of the processes does. @param {Session} session @param {Sizes} sizes */
export async function across(session, sizes) {
  return contend(session, sizes, CONTENDERS_ACROSS);
}

/** @param {Session} session @param {Sizes} sizes @param {number} contenders */
async function contend(session, sizes, contenders) {
  let within = 0;
  let overlaps = 0;
  const work = async () => {
    within += 1;
    if (within > 1) overlaps += 1;
    await new Promise((resolve) => setImmediate(resolve));
    within -= 1;
  };
  const cycles = Array.from({ length: contenders }, () => session.cycle('contended', work));
  const figures = await rateOf(cycles, sizes);
  return { ...figures, overlaps, refusedReleases: session.refusedReleases?.() ?? 0 };
}

/**
 * Runs every cycle in a loop of its own; only what ends between warm-up and deadline counts.
 * @param {(() => Promise<void>)[]} cycles
 * @param {Sizes} sizes
 */
async function rateOf(cycles, { warmUpMs, measureMs }) {
  const from = performance.now() + warmUpMs;
  const until = from + measureMs;
  const cpuBefore = process.cpuUsage();
  const counts = await Promise.all(
    cycles.map(async (cycle) => {
      let count = 0;
      for (;;) {
        await cycle();
        const now = performance.now();
        if (now >= until) return count;
        if (now >= from) count += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return {
    cyclesPerSecond: (total / measureMs) * 1_000,
    jain: jainIndex(counts),
    cpuShare: (user + system) / 1_000 / (warmUpMs + measureMs),
  };
}
