/** A holder that was paused until its lease was over, and the successor that has the lock now. */
import { createLocks, type Lease } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { Pool } from 'pg';

/** A pool whose connections may still be open when the server ends. */
export function poolOn(url: string): Pool {
  const pool = new Pool({ connectionString: url });
  pool.on('error', () => undefined);
  return pool;
}

export interface Takeover {
  /** Its lease is over, and it does not know. */
  readonly paused: Lease;
  readonly successor: Lease;
  close(): Promise<void>;
}

export async function takeover(key: string): Promise<Takeover> {
  const store = memoryStore();
  const [first, second] = [createLocks(store), createLocks(store)];
  const paused = await first.acquire(key, { ttl: 30, renew: false });
  const successor = await second.acquire(key, { ttl: '1m', wait: '1m' });
  return {
    paused,
    successor,
    async close() {
      await first.close({ drain: 0 });
      await second.close({ drain: 0 });
    },
  };
}
