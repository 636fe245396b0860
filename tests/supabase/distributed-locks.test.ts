/** Code that calls `acquire_lock` of `public` over PostgREST, beside Holdfast on the same table. */
import type { PostgrestClient } from '@supabase/postgrest-js';
import { createLocks, type Locks } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { distributedLocksSql } from '../fleets/foreign-distributed-locks.js';
import { openScene, PUBLIC_RIGHTS, type Scene } from './scene.js';

/** The calls that an application makes, with its names of the parameters. */
class RpcLock {
  readonly #client: PostgrestClient;
  readonly #holder: string;

  constructor(client: PostgrestClient, holder: string) {
    this.#client = client;
    this.#holder = holder;
  }

  acquire(name: string, seconds: number, metadata = {}): Promise<boolean> {
    const limits = { p_ttl_seconds: seconds, p_metadata: metadata };
    return this.#call('acquire_lock', { p_lock_name: name, p_holder_id: this.#holder, ...limits });
  }

  extend(name: string, seconds: number): Promise<boolean> {
    const who = { p_lock_name: name, p_holder_id: this.#holder };
    return this.#call('extend_lock', { ...who, p_additional_seconds: seconds });
  }

  release(name: string): Promise<boolean> {
    return this.#call('release_lock', { p_lock_name: name, p_holder_id: this.#holder });
  }

  async #call(name: string, args: object): Promise<boolean> {
    const { data, error } = await this.#client.schema('public').rpc(name, args);
    if (error) throw new Error(error.message);
    return data === true;
  }
}

describe.runIf(available('postgres') && available('postgrest'))(
  'acquire_lock over RPC, beside Holdfast',
  () => {
    let scene: Scene;
    let locks: Locks;
    let rpc: RpcLock;

    beforeAll(async () => {
      scene = await openScene({
        migrated: false,
        application: `${await distributedLocksSql()};${PUBLIC_RIGHTS}`,
      });
      // After PostgREST has read the schema: a new column changes none of its calls.
      await migrate(scene.pool, { layout: distributedLocks });
      locks = createLocks(postgresStore(scene.pool, { layout: distributedLocks }), {
        owner: 'our-worker',
      });
      rpc = new RpcLock(scene.client('service_role'), 'worker_1');
    });

    afterAll(async () => {
      await locks?.close();
      await scene?.stop();
    });

    it('excludes Holdfast while it holds, extends, and is followed at once by Holdfast', async () => {
      expect(await rpc.acquire('report', 30, { startedAt: 'now' })).toBe(true);
      expect(await locks.tryAcquire('report')).toBeNull();
      expect(await rpc.extend('report', 60)).toBe(true);
      expect((await locks.inspect('report'))?.holders).toMatchObject([{ owner: 'worker_1', token: 0 }]);
      expect(await rpc.release('report')).toBe(true);
      await (await locks.acquire('report')).release();
    });

    it('is excluded while Holdfast holds and renews, and follows it', async () => {
      const lease = await locks.acquire('import', { ttl: '20s', metadata: { rows: 7 } });
      expect(await rpc.acquire('import', 30)).toBe(false);
      await lease.renew();
      expect(await rpc.extend('import', 30)).toBe(false);
      expect(await rpc.release('import')).toBe(false);
      expect(lease.held).toBe(true);
      await lease.release();
      expect(await rpc.acquire('import', 30)).toBe(true);
      expect(await locks.tryAcquire('import')).toBeNull();
      expect(await rpc.release('import')).toBe(true);
    });

    it('takes over from a holder of Holdfast that is gone, and Holdfast from one of its own', async () => {
      const lease = await locks.acquire('crash', { ttl: 500, renew: false });
      const taken = async (): Promise<boolean> => await rpc.acquire('crash', 1);
      while (!(await taken()))
        expect(lease.held || Date.now() < lease.expiresAt.getTime() + 60_000).toBe(true);
      expect(lease.held).toBe(false);
      const next = await locks.acquire('crash', { wait: '60s' });
      expect(next.token).toBeGreaterThan(lease.token);
      await next.release();
    });
  },
);
