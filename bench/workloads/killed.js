/** The two sides of a holder's death: one holds its keys until it is killed, the other waits for all of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from './handover.js';

const SETTLE_MS = 300;

/** @param {import('../types.d.ts').Session} session @param {import('../types.d.ts').Task} task @returns {Promise<import('../types.d.ts').Answer>} */
export async function killed({ hold, wait }, { keys = [], part }) {
  if (!hold || !wait) throw new Error('This contender does not hold or wait.');
  if (part === 'holder') {
    await Promise.all(keys.map(async (key) => tellLoss(key, await hold(key))));
    process.send?.('ready');
    return new Promise(() => undefined);
  }
  const askedAt = monotonicMs();
  const turns = keys.map(async (key) => {
    await wait(key);
    const grantedAt = monotonicMs();
    return { askedAt, grantedAt, releasedAt: grantedAt };
  });
  await sleep(SETTLE_MS);
  process.send?.('ready');
  return { figures: {}, turns: await Promise.all(turns) };
}

/**
 * One that lost its lease before it was killed had no lock to leave behind: it tells until when it had. That is the end of
 * its lease, though a busy process hears of it later. Peers have no signal.
 * @param {string} key
 * @param {unknown} held
 */
function tellLoss(key, held) {
  const lease = /** @type {Partial<import('holdfast').Lease>} */ (held ?? {});
  lease.signal?.addEventListener('abort', () => {
    const leftMs = Math.min(Number(lease.expiresAt) - Date.now(), 0);
    process.send?.({ lost: key, untilMs: monotonicMs() + leftMs });
  });
}
