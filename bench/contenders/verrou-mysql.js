/** The knex store of @verrou/core, on mysql2 with as many connections as the others have. */
import { knexStore } from '@verrou/core/drivers/knex';
import knex from 'knex';
import { counted, mysqlRoundTrips, openPool } from '../mysql-client.js';
import { RETRY_MS } from '../plan.js';
import { openVerrou } from './verrou-session.js';

const TABLE =
  'CREATE TABLE verrou (`key` varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration bigint unsigned)';
const CONNECTIONS = 10;

/** @param {unknown} error */
function deadlockIsBusy(error) {
  if (error instanceof Error && 'code' in error && error.code === 'ER_LOCK_DEADLOCK') return false;
  throw error;
}

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await pool.query(TABLE);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const connection = knex({
      client: 'mysql2',
      connection: url,
      pool: {
        min: 0,
        max: CONNECTIONS,
        afterCreate(
          /** @type {import('../mysql-client.js').Countable} */ made,
          /** @type {(error: null, made: unknown) => void} */ done,
        ) {
          counted(made);
          done(null, made);
        },
      },
    });
    const store = knexStore({ connection, autoCreateTable: false }).factory();
    const save = store.save.bind(store);
    // It throws on a deadlock of the server, which several processes cause within moments: here it is tried again.
    store.save = (...given) => save(...given).catch(deadlockIsBusy);
    return openVerrou(store, {
      ttlMs,
      retryMs: RETRY_MS,
      storeCalls: mysqlRoundTrips,
      close: () => connection.destroy(),
    });
  },
};
