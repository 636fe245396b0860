/**
 * The least that a lock with a token can be in the table `distributed_locks`: an upsert that takes the row if it is expired,
 * with the next number of a sequence as its holder, and a delete that compares. It cannot wait or renew.
 */
import { migrate } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import { byHand } from '../postgres-contenders.js';

export const contender = byHand({
  async prepare(pool) {
    await migrate(pool, { layout: distributedLocks });
    await pool.query('CREATE SEQUENCE tokens');
  },
  take: `INSERT INTO distributed_locks AS known (lock_name, holder_id, expires_at) VALUES ($1, nextval('tokens'), now() + $2)
    ON CONFLICT (lock_name) DO UPDATE SET holder_id = EXCLUDED.holder_id, acquired_at = now(), expires_at = EXCLUDED.expires_at
    WHERE known.expires_at < now() RETURNING holder_id AS mine`,
  taken: (key, ttlMs) => [key, `${ttlMs} ms`],
  give: 'DELETE FROM distributed_locks WHERE lock_name = $1 AND holder_id = $2',
});
