/** The other software on PostgreSQL, for `openFleet`. */
import { distributedLocks, lockServiceCentral } from 'holdfast/postgres/layouts';
import { CENTRAL_TABLE, CentralOnPostgres } from './foreign-central-postgres.js';
import { DistributedLocks, distributedLocksSql } from './foreign-distributed-locks.js';
import type { Software } from './postgres-fleet.js';

export const DISTRIBUTED_LOCKS: Software = {
  layout: distributedLocks,
  schema: distributedLocksSql,
  table: 'distributed_locks',
  keyColumn: 'lock_name',
  nameOf: (name) => name,
  foreign: (pool) => new DistributedLocks(pool),
  // Only the server's clock counts; a clock that is "as far off as is allowed for" is the server's own.
  shiftMsMin: 5,
  clocksApartMs: 0,
  // Its leases are whole seconds.
  afterForeignMs: 1_500,
  afterOursMs: 1_500,
};

export const CENTRAL: Software = {
  layout: lockServiceCentral,
  schema: () => CENTRAL_TABLE,
  table: 'locks',
  keyColumn: 'lock_id',
  nameOf: (name) => `default:${name}`,
  foreign: (pool, clock) => new CentralOnPostgres(pool, clock),
  // The clock of its machine is in the expiries; whether a lock is over is decided by the server's.
  shiftMsMin: 600_000,
  clocksApartMs: 900,
  // A renewal adds to what is left, and the second named still counts.
  afterForeignMs: 9_000,
  afterOursMs: 2_000,
};
