/** The kysely store of @verrou/core, on the pool that the others have. */
import { kyselyStore } from '@verrou/core/drivers/kysely';
import { Kysely, PostgresDialect } from 'kysely';
import { RETRY_MS } from '../plan.js';
import { openPool, postgresRoundTrips } from '../postgres-client.js';
import { contender as onKnex } from './verrou-knex.js';
import { openVerrou } from './verrou-session.js';

/** @type {import('../types.d.ts').Contender} */
export const contender = {
  ...onKnex,
  async open({ url, ttlMs }) {
    const pool = openPool(url);
    const connection = new Kysely({ dialect: new PostgresDialect({ pool }) });
    return openVerrou(kyselyStore({ connection, autoCreateTable: false }).factory(), {
      ttlMs,
      retryMs: RETRY_MS,
      storeCalls: postgresRoundTrips,
      close: () => connection.destroy(),
    });
  },
};
