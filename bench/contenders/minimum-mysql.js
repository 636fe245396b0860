/**
 * The least that a lock with a token can be in MySQL: two statements. The first reads the server's time and takes the key
 * if it is free or expired, and the token rises; the second compares the token before it ends the hold. It cannot wait or
 * renew, so it runs only where nobody contends.
 */
import { mysqlRoundTrips, openPool } from '../mysql-client.js';

const TABLE =
  'CREATE TABLE minimum (name VARBINARY(255) PRIMARY KEY, token BIGINT NOT NULL, expires DATETIME(6) NOT NULL)';
const UNTIL = 'UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND';
const IS_FREE = 'expires <= UTC_TIMESTAMP(6)';
/** Returns the token as the id of the last insert; 0 where the key is held. */
const TAKE =
  `INSERT INTO minimum VALUES (?, LAST_INSERT_ID(1), ${UNTIL}) ON DUPLICATE KEY UPDATE ` +
  `token = IF(${IS_FREE}, LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0 * token)), ` +
  `expires = IF(${IS_FREE}, ${UNTIL}, expires)`;
const GIVE = "UPDATE minimum SET expires = '2000-01-01' WHERE name = ? AND token = ?";

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await pool.query(TABLE);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    const ttlUs = String(ttlMs * 1_000);
    return {
      cycle: (key, work) => async () => {
        const [{ insertId: token }] = /** @type {[import('mysql2').ResultSetHeader, unknown]} */ (
          await pool.execute(TAKE, [key, ttlUs, ttlUs])
        );
        if (!token) throw new Error(`"${key}" is held.`);
        if (work) await work();
        await pool.execute(GIVE, [key, String(token)]);
      },
      storeCalls: mysqlRoundTrips,
      close: () => pool.end(),
    };
  },
};
