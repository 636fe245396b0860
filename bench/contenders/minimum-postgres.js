/**
 * The least that a lock with a token can be in PostgreSQL: two functions of a few lines, one call each. The first reads
 * the server's time and takes the key if it is free or expired, and the token rises; the second compares the token
 * before it ends the hold. It cannot wait or renew, so it runs only where nobody contends.
 */
import { byHand } from '../postgres-contenders.js';

const SCHEMA = `
CREATE TABLE minimum (key text PRIMARY KEY, token bigint NOT NULL, expires_at timestamptz NOT NULL);
CREATE FUNCTION take(wanted text, ttl interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  at timestamptz := clock_timestamp();
  granted bigint;
BEGIN
  INSERT INTO minimum AS known VALUES (wanted, 1, at + ttl)
    ON CONFLICT (key) DO UPDATE SET token = known.token + 1, expires_at = at + ttl WHERE known.expires_at <= at
    RETURNING token INTO granted;
  RETURN granted;
END $$;
CREATE FUNCTION give(held text, mine bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE minimum SET expires_at = '-infinity' WHERE key = held AND token = mine;
  RETURN FOUND;
END $$;`;

export const contender = byHand({
  prepare: (pool) => pool.query(SCHEMA),
  take: 'SELECT take($1, $2) AS mine',
  taken: (key, ttlMs) => [key, `${ttlMs} ms`],
  give: 'SELECT give($1, $2)',
});
