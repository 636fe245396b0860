/**
 * proper-lockfile on files of a fresh folder. `realpath: false` saves it a call per cycle and the file need not exist.
 * Waiters retry for ever at a fixed delay: contended, 5 ms (of 0 to 50 ms only 50 was faster, and there a few took nearly all turns);
 * idle, 1 s, the first delay of the `retry` package's defaults. Held locks are refreshed every ttl / 3, as Holdfast's are.
 */
import fs from 'node:fs';
import { join } from 'node:path';
import lockfile from 'proper-lockfile';

const RETRY_MS_CONTENDED = 5;
const RETRY_MS_IDLE = 1_000;

/** @param {number} delayMs */
const forever = (delayMs) => ({
  forever: true,
  retries: 1,
  factor: 1,
  minTimeout: delayMs,
  maxTimeout: delayMs,
});

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async open({ folder, ttlMs }) {
    let calls = 0;
    const counted = {
      ...fs,
      mkdir: counting(fs.mkdir),
      rmdir: counting(fs.rmdir),
      stat: counting(fs.stat),
      utimes: counting(fs.utimes),
    };
    /** @param {Function} call */
    function counting(call) {
      return (/** @type {unknown[]} */ ...given) => {
        calls += 1;
        return call(...given);
      };
    }
    /** @param {string} key */
    const fileOf = (key) => join(folder, encodeURIComponent(key));
    const kept = { realpath: false, stale: ttlMs, update: Math.round(ttlMs / 3), fs: counted };
    return {
      cycle(key, work) {
        const file = fileOf(key);
        const options = { realpath: false, stale: ttlMs, retries: forever(RETRY_MS_CONTENDED) };
        return async () => {
          const release = await lockfile.lock(file, options);
          if (work) await work();
          await release();
        };
      },
      hold: (key) => lockfile.lock(fileOf(key), kept),
      holdApart: (key) => lockfile.lock(fileOf(key), { ...kept, fs }),
      wait: (key) => lockfile.lock(fileOf(key), { ...kept, retries: forever(RETRY_MS_IDLE) }),
      storeCalls: () => calls,
    };
  },
};
