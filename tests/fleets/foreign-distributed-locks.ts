/** An application with the table `distributed_locks` and its functions. The clock is the server's. */
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import type { Foreign, ForeignLock } from './foreign.js';

/** The migration of the application. */
export function distributedLocksSql(): Promise<string> {
  return readFile(new URL('./distributed-locks.sql', import.meta.url), 'utf8');
}

export class DistributedLocks implements Foreign {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async acquire(name: string, owner: string, leaseMs: number, metadata = {}): Promise<ForeignLock | null> {
    const seconds = Math.ceil(leaseMs / 1_000);
    const text = 'SELECT acquire_lock($1, $2, $3, $4) AS done';
    const isAcquired = await this.#call(text, [name, owner, seconds, JSON.stringify(metadata)]);
    return isAcquired ? this.lockOf(name, owner) : null;
  }

  /** Whoever has the holder's name has the lock. */
  lockOf(name: string, owner: string): ForeignLock {
    return {
      owner,
      heartbeat: (ms) =>
        this.#call('SELECT extend_lock($1, $2, $3) AS done', [name, owner, Math.ceil(ms / 1_000)]),
      release: () => this.#call('SELECT release_lock($1, $2) AS done', [name, owner]),
    };
  }

  async #call(text: string, values: readonly unknown[]): Promise<boolean> {
    const { rows } = await this.#pool.query<{ done: boolean }>(text, [...values]);
    return rows[0]?.done === true;
  }
}
