/** Holdfast on one store, by its public names alone, every option at its default but the ttl. */
import { createLocks } from 'holdfast';

/**
 * @param {import('holdfast').Store} store used for everything that is measured
 * @param {import('holdfast').Store} apart the same locks, for the holder whom the waiters stand against
 * @param {number} ttlMs
 * @returns {import('../types.d.ts').Session}
 */
export function openHoldfast(store, apart, ttlMs) {
  let calls = 0;
  /** @type {import('holdfast').Store} */
  const counted = Object.assign(Object.create(store), {
    apply(/** @type {Parameters<typeof store.apply>[0]} */ commands) {
      calls += 1;
      return store.apply(commands);
    },
  });
  const locks = createLocks(counted, { ttl: ttlMs });
  /** @type {import('holdfast').Locks | undefined} */
  let others;
  const ended = new AbortController();
  return {
    cycle: (key, work) => async () => {
      const lease = await locks.acquire(key);
      if (work) await work();
      await lease.release();
    },
    hold: (key) => locks.acquire(key),
    holdApart(key) {
      others = createLocks(apart, { ttl: ttlMs });
      return others.acquire(key);
    },
    wait: (key) => locks.acquire(key, { wait: '1h', signal: ended.signal }),
    storeCalls: () => calls,
    async close() {
      ended.abort(new Error('The measurement is over.'));
      await locks.close();
      await others?.close();
    },
  };
}
