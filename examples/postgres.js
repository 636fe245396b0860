// @ts-check
/**
 * A withdrawal under a lock in PostgreSQL, guarded by the token. The lock keeps others out while the holder thinks; the
 * guard, in the same database, refuses whoever thought for too long.
 *
 * DATABASE_URL=postgres://localhost/app node examples/postgres.js
 */
import assert from 'node:assert/strict';
import { createLocks } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { Pool } from 'pg';

const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://localhost/app' });
// An idle connection that breaks would end the process otherwise.
pool.on('error', (error) => console.error(error.message));
await migrate(pool);

const table = `example_accounts_${process.pid}`;
await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY, balance int NOT NULL, token bigint NOT NULL)`);
await pool.query(`INSERT INTO ${table} VALUES ('ann', 100, 0)`);

/**
 * @param {number} amount
 * @param {number} token
 * @returns {Promise<boolean>} whether it was let through
 */
async function withdraw(amount, token) {
  const { rowCount } = await pool.query(
    `UPDATE ${table} SET balance = balance - $1, token = $2 WHERE id = 'ann' AND token <= $2`,
    [amount, token],
  );
  return rowCount === 1;
}

// Two processes would have a pool each; here they share one.
const first = createLocks(postgresStore(pool), { owner: 'first' });
const second = createLocks(postgresStore(pool), { owner: 'second' });

const late = await first.acquire('account:ann');
assert.equal(await second.tryAcquire('account:ann'), null, 'one at a time');

// An operator ends the first one's turn, or a long pause does.
await second.evict('account:ann');
const next = await second.acquire('account:ann');
assert.ok(await withdraw(30, next.token), 'the holder is let through');
assert.ok(!(await withdraw(30, late.token)), 'who came too late is not');

const { rows } = await pool.query(`SELECT balance FROM ${table}`);
console.log(`the balance is ${rows[0].balance}: one withdrawal was made, and the late one refused`);
assert.equal(rows[0].balance, 70);

await pool.query(`DROP TABLE ${table}`);
await first.close();
await second.close();
await pool.end();
