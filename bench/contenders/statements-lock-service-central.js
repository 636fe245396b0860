/** What LockServiceCentral does on PostgreSQL: its two statements. No token; who finds the key held looks again after a while. */
import { migrate } from 'holdfast/postgres';
import { lockServiceCentral } from 'holdfast/postgres/layouts';
import { byHand } from '../postgres-contenders.js';

export const contender = byHand({
  prepare: (pool) => migrate(pool, { layout: lockServiceCentral }),
  take: `INSERT INTO locks (lock_id, namespace, lock_name, owner, instance_id, lease_duration, expiry)
    VALUES ('default:' || $1, 'default', $1, 'bench', $2, $3, $4)
    ON CONFLICT (lock_id) DO UPDATE SET owner = EXCLUDED.owner, instance_id = EXCLUDED.instance_id,
      lease_duration = EXCLUDED.lease_duration, expiry = EXCLUDED.expiry
    WHERE locks.expiry < EXTRACT(EPOCH FROM now())::bigint
      OR (locks.owner = EXCLUDED.owner AND locks.instance_id = EXCLUDED.instance_id)
    RETURNING instance_id AS mine`,
  taken: (key, ttlMs, owner) => {
    const seconds = Math.ceil(ttlMs / 1_000);
    return [key, owner, seconds, Math.floor(Date.now() / 1_000) + seconds];
  },
  give: "DELETE FROM locks WHERE lock_id = 'default:' || $1 AND owner = 'bench' AND instance_id = $2",
  isPatient: true,
});
