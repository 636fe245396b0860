/** Holdfast on its PostgreSQL store. The holder apart has a pool of its own. */
import { migrate, postgresStore } from 'holdfast/postgres';
import { openPool, openPoolApart, postgresRoundTrips } from '../postgres-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await migrate(pool);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    return openHoldfast(postgresStore(pool), {
      ttlMs,
      openApart: async () => postgresStore(openPoolApart(url)),
      storeCalls: postgresRoundTrips,
      closed: () => pool.end(),
    });
  },
};
