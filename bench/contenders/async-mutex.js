/** async-mutex: one mutex per key. No ttl, no token, no other process: the floor for waiting within one process. */
import { Mutex } from 'async-mutex';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open() {
    /** @type {Map<string, Mutex>} */
    const mutexes = new Map();
    /** @param {string} key */
    const mutexOf = (key) => {
      const mutex = mutexes.get(key) ?? new Mutex();
      mutexes.set(key, mutex);
      return mutex;
    };
    return {
      cycle(key, work) {
        const mutex = mutexOf(key);
        return async () => {
          const release = await mutex.acquire();
          if (work) await work();
          release();
          // As whoever has a mutex a key has to do: otherwise a key that is used once stays for ever.
          if (!mutex.isLocked()) mutexes.delete(key);
        };
      },
      holdApart: (key) => mutexOf(key).acquire(),
      wait: (key) => mutexOf(key).acquire(),
      storeCalls: () => 0,
    };
  },
};
