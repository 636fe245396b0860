/** Holdfast on one store, by its public names alone, every option at its default but the ttl. */
import { createLocks } from 'holdfast';

/** @typedef {import('holdfast').Store} Store */

/**
 * @param {Store} store used for everything that is measured
 * @param {object} parts
 * @param {number} parts.ttlMs
 * @param {() => Promise<Store>} parts.openApart the same locks, for the holder whom the waiters stand against
 * @param {() => number} [parts.storeCalls] where the client counts its round trips; else the calls of `apply` are counted
 * @param {() => Promise<unknown>} [parts.closed]
 * @returns {import('../types.d.ts').Session}
 */
export function openHoldfast(store, { ttlMs, openApart, storeCalls, closed }) {
  const counted = counting(store);
  const locks = createLocks(storeCalls ? store : counted.store, { ttl: ttlMs });
  /** @type {import('holdfast').Locks | undefined} */
  let others;
  const ended = new AbortController();
  return {
    cycle: (key, work) => async () => {
      const lease = await locks.acquire(key);
      if (work) await work(() => lease.held);
      await lease.release();
    },
    hold: (key) => locks.acquire(key),
    async holdApart(key) {
      others = createLocks(await openApart(), { ttl: ttlMs });
      return others.acquire(key);
    },
    async tryHeld(key) {
      if (await locks.tryAcquire(key)) throw new Error('The key is not held.');
    },
    wait: (key) => locks.acquire(key, { wait: '1h', signal: ended.signal }),
    storeCalls: storeCalls ?? counted.calls,
    async close() {
      ended.abort(new Error('The measurement is over.'));
      await locks.close();
      await others?.close();
      await closed?.();
    },
  };
}

/** @param {Store} store */
function counting(store) {
  let calls = 0;
  const { atOnce } = store.apply;
  const counted =
    (/** @type {(commands: readonly import('holdfast/protocol').Command[]) => any} */ apply) =>
    (/** @type {readonly import('holdfast/protocol').Command[]} */ commands) => {
      calls += 1;
      return apply(commands);
    };
  const apply = Object.assign(counted(store.apply), atOnce && { atOnce: counted(atOnce) });
  return { store: Object.assign(Object.create(store), { apply }), calls: () => calls };
}
