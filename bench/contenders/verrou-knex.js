/** The knex store of @verrou/core, on the pool that the others have. */
import { knexStore } from '@verrou/core/drivers/knex';
import knex from 'knex';
import { RETRY_MS } from '../plan.js';
import { openPool, postgresRoundTrips } from '../postgres-client.js';
import { openVerrou } from './verrou-session.js';

const TABLE =
  'CREATE TABLE verrou (key varchar(255) PRIMARY KEY, owner varchar(255) NOT NULL, expiration bigint)';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  async prepare({ url }) {
    const pool = openPool(url);
    await pool.query(TABLE);
    await pool.end();
  },
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    const connection = knex({ client: 'pg', connectionPool: pool });
    return openVerrou(knexStore({ connection, autoCreateTable: false }).factory(), {
      ttlMs,
      retryMs: RETRY_MS,
      storeCalls: postgresRoundTrips,
      close: () => pool.end(),
    });
  },
};
