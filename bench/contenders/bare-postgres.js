/**
 * What many write by hand: an upsert that takes the row if it is expired, and a delete that compares. It cannot wait or
 * renew, so it runs only where nobody contends.
 */
import { randomUUID } from 'node:crypto';
import { openPool, postgresRoundTrips } from '../postgres-client.js';

const SCHEMA =
  'CREATE TABLE bare (key text PRIMARY KEY, owner uuid NOT NULL, expires_at timestamptz NOT NULL)';
const TAKE = `INSERT INTO bare VALUES ($1, $2, now() + $3) ON CONFLICT (key)
  DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE bare.expires_at <= now()`;
const GIVE = 'DELETE FROM bare WHERE key = $1 AND owner = $2';

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
        const mine = randomUUID();
        const { rowCount } = await pool.query({ name: 'take', text: TAKE, values: [key, mine, ttl] });
        if (rowCount !== 1) throw new Error(`"${key}" is held.`);
        if (work) await work();
        await pool.query({ name: 'give', text: GIVE, values: [key, mine] });
      },
      storeCalls: postgresRoundTrips,
      close: () => pool.end(),
    };
  },
};
