/**
 * @verrou/core on one of its stores. One lock object per contender, made once: making one per cycle is slower.
 * Idle waiters poll at its default. It renews nothing by itself, so it has no `hold` to measure, and the holder whom
 * idle waiters stand against has no ttl.
 */
import { Verrou } from '@verrou/core';

const RETRY_MS_IDLE = 250;

/**
 * @param {import('@verrou/core/types').LockStore} store
 * @param {{ ttlMs: number, retryMs: number, storeCalls: () => number, close?: () => Promise<void> }} options
 * @returns {import('../types.d.ts').Session}
 */
export function openVerrou(store, { ttlMs, retryMs, storeCalls, close }) {
  let refused = 0;
  const verrou = new Verrou({ default: 'only', stores: { only: { driver: { factory: () => store } } } });
  return {
    cycle(key, work) {
      const lock = verrou.createLock(key, ttlMs);
      const options = { retry: { delay: retryMs } };
      return async () => {
        await lock.acquire(options);
        if (work) await work();
        try {
          await lock.release();
        } catch (error) {
          if (!(error instanceof Error && 'code' in error && error.code === 'E_LOCK_NOT_OWNED')) throw error;
          refused += 1;
        }
      };
    },
    holdApart: (key) => verrou.createLock(key, null).acquire(),
    wait: (key) => verrou.createLock(key, ttlMs).acquire({ retry: { delay: RETRY_MS_IDLE } }),
    storeCalls,
    refusedReleases: () => refused,
    ...(close && { close }),
  };
}
