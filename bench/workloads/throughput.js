/**
 * Cycles a second: one loop on one key, 64 loops on 64 keys, 16 loops on one key, and the same 16 in four processes.
 * The contended ones turn the event loop once under the lock: without that, a library whose waiters
 * poll by timer would never see its timers fire, and no two contenders would ever meet.
 */
import { jainIndex, quantile } from '../figures.js';
import { countUnderLock } from '../shared-counter.js';

const CONTENDERS = 16;
const CONTENDERS_ACROSS = 4;

/** @typedef {import('../types.d.ts').Session} Session */
/** @typedef {import('../types.d.ts').Task} Task */
/** @typedef {import('../types.d.ts').Answer} Answer */

/** The time of a cycle and its round trips too: with nobody else about, both are the library's own. @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function sequential(session, { sizes }) {
  const cycle = session.cycle('sequential', undefined);
  /** @type {number[]} */
  const timesMs = [];
  const callsBefore = session.storeCalls?.();
  const timed = async () => {
    const startedAt = performance.now();
    await cycle();
    timesMs.push(performance.now() - startedAt);
  };
  const { figures } = await rateOf([timed], sizes);
  const cycles = timesMs.length;
  return {
    figures: {
      ...figures,
      p50Us: quantile(timesMs.slice(Math.floor(cycles / 4)), 0.5) * 1_000,
      ...(callsBefore !== undefined && {
        callsPerCycle: ((session.storeCalls?.() ?? 0) - callsBefore) / cycles,
      }),
    },
  };
}

/** @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function inFlight(session, { sizes }) {
  const cycles = Array.from({ length: sizes.inFlight }, (_, index) =>
    session.cycle(`in-flight:${index}`, undefined),
  );
  return rateOf(cycles, sizes);
}

/** @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function contended(session, { sizes }) {
  /** @type {Set<() => boolean>} */
  const within = new Set();
  let overlaps = 0;
  const work = async (/** @type {() => boolean} */ isHeld = () => true) => {
    if (isHeld() && [...within].some((isHeldToo) => isHeldToo())) overlaps += 1;
    within.add(isHeld);
    await turnOfTheLoop();
    within.delete(isHeld);
  };
  const cycles = Array.from({ length: CONTENDERS }, () => session.cycle('contended', work));
  const { figures } = await rateOf(cycles, sizes);
  return { figures: { ...figures, overlaps, refusedReleases: session.refusedReleases?.() ?? 0 } };
}

/** What each of the processes does. @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function across(session, { sizes, folder }) {
  const counter = countUnderLock(folder, turnOfTheLoop);
  const cycles = Array.from({ length: CONTENDERS_ACROSS }, () => session.cycle('contended', counter.work));
  const { figures, counts } = await rateOf(cycles, { ...sizes, measureMs: sizes.acrossMs });
  const refusedReleases = session.refusedReleases?.() ?? 0;
  return { figures: { ...figures, counted: counter.counted(), refusedReleases }, ...(counts && { counts }) };
}

/** @returns {Promise<void>} */
function turnOfTheLoop() {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Runs every cycle in a loop of its own; only what ends between warm-up and deadline counts.
 * @param {(() => Promise<void>)[]} cycles
 * @param {import('../types.d.ts').Sizes} sizes
 * @returns {Promise<Answer>}
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
    figures: {
      cyclesPerSecond: (total / measureMs) * 1_000,
      jain: jainIndex(counts),
      cpuShare: (user + system) / 1_000 / (warmUpMs + measureMs),
    },
    counts,
  };
}
