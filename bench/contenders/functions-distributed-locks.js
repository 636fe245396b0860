/**
 * What applications with the table `distributed_locks` do: its functions `acquire_lock` and `release_lock`. No token; who
 * finds the key held looks again after a while.
 */
import { readFile } from 'node:fs/promises';
import { byHand } from '../postgres-contenders.js';

/** The migration of the application. */
const SCHEMA = new URL('../../tests/fleets/distributed-locks.sql', import.meta.url);

export const contender = byHand({
  prepare: async (pool) => pool.query(await readFile(SCHEMA, 'utf8')),
  take: 'SELECT CASE WHEN acquire_lock($1, $2, $3) THEN $2 END AS mine',
  taken: (key, ttlMs, owner) => [key, owner, Math.ceil(ttlMs / 1_000)],
  give: 'SELECT release_lock($1, $2)',
  isPatient: true,
});
