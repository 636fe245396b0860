/**
 * What many write by hand: an upsert that takes the row if it is expired, and a delete that compares. It cannot wait or
 * renew, so it runs only where nobody contends.
 */
import { byHand } from '../postgres-contenders.js';

const SCHEMA =
  'CREATE TABLE bare (key text PRIMARY KEY, owner uuid NOT NULL, expires_at timestamptz NOT NULL)';

export const contender = byHand({
  prepare: (pool) => pool.query(SCHEMA),
  take: `INSERT INTO bare VALUES ($1, $2, now() + $3) ON CONFLICT (key)
    DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE bare.expires_at <= now()
    RETURNING owner AS mine`,
  taken: (key, ttlMs, owner) => [key, owner, `${ttlMs} ms`],
  give: 'DELETE FROM bare WHERE key = $1 AND owner = $2',
});
