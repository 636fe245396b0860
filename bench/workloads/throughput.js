/**
 * Cycles per second: one loop on one key, 64 loops on 64 keys, the same on keys that are used once, 16 loops on one key, and
 * the same 16 in four processes.
 * The contended ones turn the event loop once under the lock: without that, a library whose waiters
 * poll by timer would never see its timers fire, and no two contenders would ever meet.
 */
import { jainIndex, quantile } from '../figures.js';
import { countUnderLock } from '../shared-counter.js';

const CONTENDERS = 16;
/** So many first cycles are called cold: the engine of the language has not compiled them yet. */
const COLD_CYCLES = 200;
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
  const { figures } = await rateOf([timed], sizes, sizes.warmUpCycles);
  const cycles = timesMs.length;
  return {
    figures: {
      ...figures,
      p50Us: quantile(timesMs.slice(figures.cyclesCold), 0.5) * 1_000,
      coldP50Us: quantile(timesMs.slice(0, COLD_CYCLES), 0.5) * 1_000,
      ...(callsBefore !== undefined && {
        callsPerCycle: ((session.storeCalls?.() ?? 0) - callsBefore) / cycles,
      }),
    },
  };
}

/** @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function inFlight(session, { sizes }) {
  const cycles = Array.from({ length: sizes.inFlight }, (_, index) =>
    session.cycle(`in-flight-${index}`, undefined),
  );
  return rateOf(cycles, sizes, sizes.warmUpCycles);
}

/** Every cycle on a key of its own, one after the other. @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function fresh(session, { sizes }) {
  return withMemory(() => rateOf([onFreshKeys(session, 'fresh')], sizes, sizes.warmUpCycles));
}

/** @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function freshInFlight(session, { sizes }) {
  const cycles = Array.from({ length: sizes.inFlight }, (_, index) => onFreshKeys(session, `fresh-${index}`));
  return withMemory(() => rateOf(cycles, sizes, sizes.warmUpCycles));
}

/** @param {Session} session @param {string} name */
function onFreshKeys(session, name) {
  let count = 0;
  return () => {
    count += 1;
    return session.cycle(`${name}-${count}`, undefined)();
  };
}

/** Half of a cycle: keys are acquired, one after the other, and kept. @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function granted(session, { sizes }) {
  let count = 0;
  return rateOf([async () => void (await session.hold?.(`granted-${count++}`))], sizes);
}

/** A key that somebody else holds is asked for without waiting. @param {Session} session @param {Task} task @returns {Promise<Answer>} */
export async function refused(session, { sizes }) {
  await session.holdApart?.('refused');
  return rateOf([async () => void (await session.tryHeld?.('refused'))], sizes);
}

/** How much heap it leaves. @param {() => Promise<Answer>} measure @returns {Promise<Answer>} */
async function withMemory(measure) {
  const heapMb = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  const before = heapMb();
  const { figures } = await measure();
  return { figures: { ...figures, heapLeftMb: Math.max(0, heapMb() - before) } };
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
 * Runs every cycle in a loop of its own; only what ends between warm-up and deadline counts. A slow engine makes few cycles in the
 * time of the warm-up: it is given more time, for the engine of the language to compile what they run.
 * @param {(() => Promise<void>)[]} cycles
 * @param {import('../types.d.ts').Sizes} sizes
 * @param {number} [warmUpCycles] at least so many go before, of all loops together
 * @returns {Promise<Answer & { readonly figures: { readonly cyclesCold: number } }>}
 */
async function rateOf(cycles, { warmUpMs, warmUpMsMax, measureMs }, warmUpCycles = 0) {
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  /** Of the processor, when the first of them had warmed up. @type {NodeJS.CpuUsage | undefined} */
  let cpuWarm;
  let from = Number.POSITIVE_INFINITY;
  let cyclesCold = 0;
  let cyclesMade = 0;
  const isWarm = (/** @type {number} */ now) =>
    now >= startedAt + warmUpMs && (cyclesMade >= warmUpCycles || now >= startedAt + warmUpMsMax);
  const counts = await Promise.all(
    cycles.map(async (cycle) => {
      let count = 0;
      for (;;) {
        await cycle();
        cyclesMade += 1;
        const now = performance.now();
        if (now >= from + measureMs) return count;
        if (now >= from) count += 1;
        else if (!cpuWarm && isWarm(now)) {
          from = now;
          cyclesCold = cyclesMade;
          cpuWarm = process.cpuUsage();
        }
      }
    }),
  );
  const tookMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  const warm = process.cpuUsage(cpuWarm);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return {
    figures: {
      cyclesPerSecond: (total / measureMs) * 1_000,
      jain: jainIndex(counts),
      cpuShare: (user + system) / 1_000 / tookMs,
      clientCpuUs: (warm.user + warm.system) / Math.max(total, 1),
      cyclesMade,
      cyclesCold,
    },
    counts,
  };
}
