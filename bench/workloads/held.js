/**
 * What it costs to hold many leases: round trips to the store and processor time while they are renewed, timers and heap.
 * They are taken evenly over a third of the ttl, so that their renewals fall due evenly too: the hard case for batching.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { liveTimers } from '../live-timers.js';

const STEP_MS = 10;
/** So that compiled code does not count as heap of the leases. A server is slow, and fewer have to do. */
const WARM_UP_CYCLES = 2_000;
const WARM_UP_MS_MAX = 1_000;

/**
 * @param {import('../types.d.ts').Session} session
 * @param {import('../types.d.ts').Task} task
 * @returns {Promise<import('../types.d.ts').Answer>}
 */
export async function held(session, { sizes }) {
  const { leases, spreadMs, heldMs } = sizes;
  const { hold, storeCalls } = session;
  if (!hold || !storeCalls) throw new Error('This contender does not hold leases.');
  const cycle = session.cycle('warm', undefined);
  const warmUntil = performance.now() + WARM_UP_MS_MAX;
  for (let count = 0; count < WARM_UP_CYCLES && performance.now() < warmUntil; count++) await cycle();
  const heapBefore = heapBytes();
  const kept = await takeEvenly(hold, leases, spreadMs);
  const heapBytesPerLease = (heapBytes() - heapBefore) / leases;
  const callsBefore = storeCalls();
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  let timers = 0;
  let samples = 0;
  while (performance.now() - startedAt < heldMs) {
    await sleep(50);
    timers = Math.max(timers, liveTimers());
    samples += 1;
  }
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (kept.length !== leases || samples === 0) throw new Error('Nothing was measured.');
  return {
    figures: {
      storeCallsPerSecond: ((storeCalls() - callsBefore) / elapsedMs) * 1_000,
      timers,
      heapBytesPerLease,
      cpuShare: (user + system) / 1_000 / elapsedMs,
    },
  };
}

/**
 * @param {(key: string) => Promise<unknown>} hold
 * @param {number} leases
 * @param {number} spreadMs
 */
async function takeEvenly(hold, leases, spreadMs) {
  /** @type {unknown[]} */
  const kept = [];
  const startedAt = performance.now();
  while (kept.length < leases) {
    const due = Math.min(leases, Math.ceil(((performance.now() - startedAt) / spreadMs) * leases));
    const batch = [];
    for (let index = kept.length; index < due; index++) batch.push(hold(`held-${index}`));
    kept.push(...(await Promise.all(batch)));
    await sleep(STEP_MS);
  }
  return kept;
}

function heapBytes() {
  if (!globalThis.gc) throw new Error('Run with --expose-gc.');
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
