/** What the contenders on PostgreSQL have in common: Holdfast on one of its tables, and locks of two statements by hand. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrate, postgresStore } from 'holdfast/postgres';
import { openHoldfast } from './contenders/holdfast.js';
import { RETRY_MS } from './plan.js';
import { openPool, openPoolApart, postgresRoundTrips } from './postgres-client.js';

/** @typedef {import('./types.d.ts').Contender} Contender */

/** @param {string} url @param {(pool: import('pg').Pool) => Promise<unknown>} use */
export async function onDatabase(url, use) {
  const pool = openPool(url);
  await use(pool);
  await pool.end();
}

/** The holder apart has a pool of its own. @param {import('holdfast/postgres').MigrateOptions} [options] @returns {Contender} */
export function holdfastOn(options = {}) {
  return {
    prepare: ({ url }) => onDatabase(url, (pool) => migrate(pool, options)),
    async open({ url, ttlMs }) {
      const pool = openPool(url);
      return openHoldfast(postgresStore(pool, options), {
        ttlMs,
        openApart: async () => postgresStore(openPoolApart(url), options),
        storeCalls: postgresRoundTrips,
        closed: () => pool.end(),
      });
    },
  };
}

/**
 * @typedef {object} Statements
 * @property {(pool: import('pg').Pool) => Promise<unknown>} prepare creates the table, and functions where there are some
 * @property {string} take returns what `give` needs as `mine`; no row, or null, where the key is held
 * @property {(key: string, ttlMs: number, owner: string) => unknown[]} taken the values of its parameters
 * @property {string} give its parameters are the key and `mine`
 * @property {boolean} [isPatient] looks again when the key is held, after a while; else it runs only where nobody contends
 */

/** Statements have names, so that the server parses them once a connection, as it does what Holdfast says. @param {Statements} statements @returns {Contender} */
export function byHand({ prepare, take, taken, give, isPatient = false }) {
  return {
    prepare: ({ url }) => onDatabase(url, prepare),
    async open({ url, ttlMs }) {
      const pool = openPool(url);
      return {
        cycle: (key, work) => async () => {
          const values = taken(key, ttlMs, randomUUID());
          let mine = null;
          for (;;) {
            const { rows } = await pool.query({ name: 'take', text: take, values });
            mine = rows[0]?.mine ?? null;
            if (mine !== null) break;
            if (!isPatient) throw new Error(`"${key}" is held.`);
            await sleep(RETRY_MS);
          }
          if (work) await work();
          await pool.query({ name: 'give', text: give, values: [key, mine] });
        },
        storeCalls: postgresRoundTrips,
        close: () => pool.end(),
      };
    },
  };
}
