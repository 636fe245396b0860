/**
 * The least that a lock with a token can be in PostgreSQL: two functions of a few lines, one call each. The first reads
 * the server's time and takes the key if it is free or expired, and the token rises; the second compares the token
 * before it ends the hold. It cannot wait or renew, so it runs only where nobody contends.
 */
import { openPool, postgresRoundTrips } from '../postgres-client.js';

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

/** Named, so that the server parses them once a connection, as it does what Holdfast says. */
const TAKE = { name: 'take', text: 'SELECT take($1, $2) AS token' };
const GIVE = { name: 'give', text: 'SELECT give($1, $2)' };

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await pool.query(SCHEMA);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    const ttl = `${ttlMs} ms`;
    return {
      cycle: (key, work) => async () => {
        const { rows } = await pool.query({ ...TAKE, values: [key, ttl] });
        const token = rows[0]?.token;
        if (!token) throw new Error(`"${key}" is held.`);
        if (work) await work();
        await pool.query({ ...GIVE, values: [key, token] });
      },
      storeCalls: postgresRoundTrips,
      close: () => pool.end(),
    };
  },
};
