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
  /**
   * Never analysed, so that plans made for a small table would show. The measurement begins when all rows are on the disk:
   * until then commits wait for them, in an empty table too.
   */
  async fill({ url }, keys) {
    const pool = openPool(url);
    const insert =
      'INSERT INTO holdfast.records (key, delete_after) SELECT $1::text || n, $2 FROM generate_series(1, $3) n';
    await pool.query('ALTER TABLE holdfast.records SET (autovacuum_enabled = false)');
    await pool.query(insert, ['other:', Number.MAX_SAFE_INTEGER, keys]);
    await pool.query('CHECKPOINT');
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
