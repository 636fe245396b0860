/**
 * The least that a lock with a token can be in the table of LockServiceCentral: an upsert that takes the row if it is
 * expired, with the next number of a sequence as its instance, and a delete that compares. It cannot wait or renew.
 */
import { migrate } from 'holdfast/postgres';
import { lockServiceCentral } from 'holdfast/postgres/layouts';
import { byHand } from '../postgres-contenders.js';

export const contender = byHand({
  async prepare(pool) {
    await migrate(pool, { layout: lockServiceCentral });
    await pool.query('CREATE SEQUENCE tokens');
  },
  take: `INSERT INTO locks AS known (lock_id, namespace, lock_name, owner, instance_id, lease_duration, expiry)
    VALUES ('default:' || $1, 'default', $1, 'bench', nextval('tokens'), $2, extract(epoch FROM now())::bigint + $2)
    ON CONFLICT (lock_id) DO UPDATE SET owner = EXCLUDED.owner, instance_id = EXCLUDED.instance_id,
      lease_duration = EXCLUDED.lease_duration, expiry = EXCLUDED.expiry
    WHERE known.expiry < extract(epoch FROM now())::bigint RETURNING instance_id AS mine`,
  taken: (key, ttlMs) => [key, Math.ceil(ttlMs / 1_000)],
  give: "DELETE FROM locks WHERE lock_id = 'default:' || $1 AND instance_id = $2",
});
