/** LockServiceCentral on PostgreSQL: expiries are written by its own clock, and compared by the server's. */
import type pg from 'pg';
import type { Foreign, ForeignLock, MachineClock } from './foreign.js';

export const CENTRAL_TABLE = `
CREATE TABLE IF NOT EXISTS locks (
    lock_id VARCHAR(512) PRIMARY KEY,
    namespace VARCHAR(255) NOT NULL,
    lock_name VARCHAR(255) NOT NULL,
    owner VARCHAR(255) NOT NULL,
    instance_id VARCHAR(255) NOT NULL,
    lease_duration BIGINT NOT NULL,
    expiry BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_locks_expiry ON locks (expiry)`;

let instances = 0;

export class CentralOnPostgres implements Foreign {
  readonly #pool: pg.Pool;
  readonly #clock: MachineClock;
  readonly #namespace: string;

  constructor(pool: pg.Pool, clock: MachineClock = Date.now, namespace = 'default') {
    this.#pool = pool;
    this.#clock = clock;
    this.#namespace = namespace;
  }

  async acquire(
    name: string,
    owner: string,
    leaseMs: number,
    instanceId = `instance-${process.pid}-${instances++}`,
  ): Promise<ForeignLock | null> {
    const lease = Math.ceil(leaseMs / 1_000);
    const expiry = Math.floor(this.#clock() / 1_000) + lease;
    const isAcquired = await this.#changes(
      `INSERT INTO locks (lock_id, namespace, lock_name, owner, instance_id, lease_duration, expiry)
       VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (lock_id) DO UPDATE SET owner = EXCLUDED.owner, instance_id = EXCLUDED.instance_id,
         lease_duration = EXCLUDED.lease_duration, expiry = EXCLUDED.expiry
       WHERE locks.expiry < EXTRACT(EPOCH FROM now())::bigint
         OR (locks.owner = EXCLUDED.owner AND locks.instance_id = EXCLUDED.instance_id)
       RETURNING lock_id`,
      [this.#idOf(name), this.#namespace, name, owner, instanceId, lease, expiry],
    );
    return isAcquired ? this.lockOf(name, owner, instanceId) : null;
  }

  /** Whoever has owner and instance has the lock. */
  lockOf(name: string, owner: string, instanceId: string): ForeignLock {
    return {
      owner,
      heartbeat: (ms) =>
        this.#changes(
          `UPDATE locks SET lease_duration = lease_duration + $1, expiry = expiry + $1
           WHERE lock_id = $2 AND expiry >= EXTRACT(EPOCH FROM now())::bigint AND owner = $3 AND instance_id = $4
           RETURNING namespace, lock_name, owner, instance_id, lease_duration, expiry`,
          [Math.ceil(ms / 1_000), this.#idOf(name), owner, instanceId],
        ),
      release: () =>
        this.#changes(
          'DELETE FROM locks WHERE lock_id = $1 AND owner = $2 AND instance_id = $3 RETURNING lock_id',
          [this.#idOf(name), owner, instanceId],
        ),
    };
  }

  #idOf(name: string): string {
    return `${this.#namespace}:${name}`;
  }

  async #changes(text: string, values: readonly unknown[]): Promise<boolean> {
    return ((await this.#pool.query(text, [...values])).rowCount ?? 0) > 0;
  }
}
