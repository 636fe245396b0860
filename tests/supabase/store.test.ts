/** Locks over HTTP beside those of the PostgreSQL store and of plain SQL, on one table. */
import { PostgrestClient } from '@supabase/postgrest-js';
import { createLocks } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import { supabaseStore } from 'holdfast/supabase';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jwtOf, openScene, type Scene } from './scene.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What people generate from their project; the schema of the locks is not in it. */
interface Generated {
  public: {
    Tables: {
      orders: { Row: { id: number }; Insert: { id: number }; Update: { id?: number }; Relationships: [] };
    };
    Views: Record<never, never>;
    Functions: { charge: { Args: { id: number }; Returns: boolean } };
  };
}

describe.runIf(available('postgres') && available('postgrest'))('the Supabase store', () => {
  let scene: Scene;
  let names = 0;
  const fresh = (): string => `job:${names++}`;

  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  it('a client with the types of a project fits', async () => {
    const { url } = scene.postgrest;
    const headers = { Authorization: `Bearer ${jwtOf({ role: 'service_role' })}` };
    const locks = createLocks(supabaseStore(new PostgrestClient<Generated>(url, { headers })));
    await (await locks.acquire(fresh())).release();
    await locks.close({ drain: 0 });
  });

  it('the PostgreSQL store on the same table is excluded, and excludes; tokens rise through both', async () => {
    const name = fresh();
    const overHttp = createLocks(supabaseStore(scene.client('service_role')), { owner: 'http' });
    const direct = createLocks(postgresStore(scene.pool), { owner: 'direct' });
    let last = 0;
    for (const [holder, other] of [
      [overHttp, direct],
      [direct, overHttp],
      [overHttp, direct],
    ] as const) {
      const lease = await holder.acquire(name);
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      expect(await other.tryAcquire(name)).toBeNull();
      const waiting = other.acquire(name, { wait: '20s' });
      await pause(100);
      await lease.release();
      const next = await waiting;
      expect(next.token).toBeGreaterThan(last);
      last = next.token;
      await next.release();
    }
    await Promise.all([overHttp.close(), direct.close()]);
  });

  it('a mixed fleet in a crowd never overlaps', async () => {
    const name = fresh();
    const fleet = Array.from({ length: 4 }, (_, index) =>
      createLocks(index % 2 === 0 ? supabaseStore(scene.client('service_role')) : postgresStore(scene.pool)),
    );
    let inside = 0;
    let turns = 0;
    const tokens: number[] = [];
    const work = fleet.flatMap((locks) =>
      Array.from({ length: 3 }, () =>
        locks.withLock(
          name,
          async (lease) => {
            inside += 1;
            expect(inside).toBe(1);
            tokens.push(lease.token);
            await pause(5);
            inside -= 1;
            turns += 1;
          },
          { wait: '60s' },
        ),
      ),
    );
    await Promise.all(work);
    expect(turns).toBe(12);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    await Promise.all(fleet.map((locks) => locks.close({ drain: 0 })));
  }, 90_000);

  it('the functions of plain SQL work over rpc, beside the store', async () => {
    const name = fresh();
    const rpc = scene.client('service_role').schema('holdfast');
    const args = { p_lock_name: name, p_holder_id: 'anna' };
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    expect((await rpc.rpc('acquire_lock', { ...args, p_ttl_seconds: 20, p_metadata: { a: 1 } })).data).toBe(
      true,
    );
    expect(await locks.tryAcquire(name)).toBeNull();
    expect((await rpc.rpc('extend_lock', { ...args, p_additional_seconds: 60 })).data).toBe(true);
    expect((await rpc.from('locks').select('owner,metadata').eq('name', name)).data).toEqual([
      { owner: 'anna', metadata: { a: 1 } },
    ]);
    expect((await rpc.rpc('release_lock', args)).data).toBe(true);
    await (await locks.acquire(name)).release();
    await locks.close({ drain: 0 });
  });

  it('says what the project promises', async () => {
    const store = supabaseStore(scene.client('service_role'));
    const { server, findings } = await store.probe();
    expect(server).toMatch(/PostgreSQL \d+.*PostgREST/);
    expect(findings.map(({ text }) => text).join(' ')).toMatch(/fsync is off.*HTTP brings no wake-ups/);
    await store.close();
  });
});
