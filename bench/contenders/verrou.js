/**
 * The memory store of @verrou/core. One lock object a contender, made once: making one a cycle is slower.
 * Waiters poll; 1 ms is the shortest delay a timer has, so contended waiters lose as little as they can.
 * Idle waiters poll at the default of 250 ms. It renews nothing by itself, so it has no `hold` to measure.
 */
import { Verrou } from '@verrou/core';
import { memoryStore } from '@verrou/core/drivers/memory';

const RETRY_MS_CONTENDED = 1;
const RETRY_MS_IDLE = 250;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    const store = memoryStore().factory();
    let calls = 0;
    let refused = 0;
    const verrou = new Verrou({
      default: 'memory',
      stores: { memory: { driver: { factory: () => store } } },
    });
    return {
      cycle(key, work) {
        const lock = verrou.createLock(key, ttlMs);
        const options = { retry: { delay: RETRY_MS_CONTENDED } };
        return async () => {
          await lock.acquire(options);
          if (work) await work();
          try {
            await lock.release();
          } catch (error) {
            if (!(error instanceof Error && 'code' in error && error.code === 'E_LOCK_NOT_OWNED'))
              throw error;
            refused += 1;
          }
        };
      },
      holdApart: (key) => verrou.createLock(key, ttlMs).acquire(),
      wait(key) {
        if (calls === 0) {
          const save = store.save.bind(store);
          store.save = (...given) => {
            calls += 1;
            return save(...given);
          };
        }
        return verrou.createLock(key, ttlMs).acquire({ retry: { delay: RETRY_MS_IDLE } });
      },
      storeCalls: () => calls,
      refusedReleases: () => refused,
    };
  },
};
