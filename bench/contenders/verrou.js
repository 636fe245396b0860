/**
 * The memory store of @verrou/core. Waiters poll; 1 ms is the shortest delay a timer has, so contended waiters lose as
 * little as they can.
 */
import { memoryStore } from '@verrou/core/drivers/memory';
import { openVerrou } from './verrou-session.js';

const RETRY_MS_CONTENDED = 1;

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    const store = memoryStore().factory();
    let calls = 0;
    const session = openVerrou(store, { ttlMs, retryMs: RETRY_MS_CONTENDED, storeCalls: () => calls });
    return {
      ...session,
      wait(key) {
        if (calls === 0) {
          const save = store.save.bind(store);
          store.save = (...given) => {
            calls += 1;
            return save(...given);
          };
        }
        return session.wait?.(key) ?? Promise.resolve();
      },
    };
  },
};
