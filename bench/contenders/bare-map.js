/**
 * The least that a lock in memory can be: a Map, a rising token, a comparison before the delete.
 * It cannot wait, expire or renew, so it runs only where nobody contends.
 */

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ ttlMs }) {
    /** @type {Map<string, { token: number, expiresAt: number }>} */
    const held = new Map();
    let token = 0;
    return {
      cycle: (key, work) => async () => {
        const other = held.get(key);
        if (other && other.expiresAt > Date.now()) throw new Error(`"${key}" is held.`);
        const mine = { token: ++token, expiresAt: Date.now() + ttlMs };
        held.set(key, mine);
        if (work) await work();
        if (held.get(key)?.token === mine.token) held.delete(key);
      },
    };
  },
};
