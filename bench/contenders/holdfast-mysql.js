/** Holdfast on its MySQL store. The holder apart has a pool of its own. */
import { createTable, mysqlStore } from 'holdfast/mysql';
import { mysqlRoundTrips, openPool, openPoolApart } from '../mysql-client.js';
import { openHoldfast } from './holdfast.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await createTable(pool);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    return openHoldfast(mysqlStore(pool), {
      ttlMs,
      openApart: async () => mysqlStore(openPoolApart(url)),
      storeCalls: mysqlRoundTrips,
      closed: () => pool.end(),
    });
  },
};
