/**
 * What each of several processes does to see how fast a key goes from one to another: it takes the key, works, gives it
 * back, and stays away for a while. Without that, one that polls would seldom get past the one that has just given back.
 */
import { setTimeout as sleep } from 'node:timers/promises';

const WORK_MS = 5;
/** About as long as the peers take to look again; never the same, lest the looks of all fall into one step. */
const PAUSE_MS_LEAST = 5;
const PAUSE_MS_MORE = 10;

/** @param {import('../types.d.ts').Session} session @param {import('../types.d.ts').Task} task @returns {Promise<import('../types.d.ts').Answer>} */
export async function handover(session, { sizes }) {
  /** @type {import('../types.d.ts').Turn[]} */
  const turns = [];
  let askedAt = 0;
  const cycle = session.cycle('handover', async (isHeld = () => true) => {
    const grantedAt = monotonicMs();
    await sleep(WORK_MS);
    // A process that stood still for a ttl has lost the key before it gave it back.
    if (isHeld()) turns.push({ askedAt, grantedAt, releasedAt: monotonicMs() });
  });
  const until = monotonicMs() + sizes.warmUpMs + sizes.handoverMs;
  while (monotonicMs() < until) {
    askedAt = monotonicMs();
    await cycle();
    await sleep(PAUSE_MS_LEAST + Math.random() * PAUSE_MS_MORE);
  }
  return { figures: {}, turns };
}

/** Of the machine: the same in all of its processes. */
export function monotonicMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}
