/** Holdfast on its PostgreSQL store. */
import { holdfastOn, onDatabase } from '../postgres-contenders.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  ...holdfastOn(),
  /**
   * Never analysed, so that plans made for a small table would show. The measurement begins when all rows are on the disk:
   * until then commits wait for them, in an empty table too.
   */
  async fill({ url }, keys) {
    const insert =
      'INSERT INTO holdfast.records (key, delete_after) SELECT $1::text || n, $2 FROM generate_series(1, $3) n';
    await onDatabase(url, async (pool) => {
      await pool.query('ALTER TABLE holdfast.records SET (autovacuum_enabled = false)');
      await pool.query(insert, ['other:', Number.MAX_SAFE_INTEGER, keys]);
      await pool.query('CHECKPOINT');
    });
  },
};
