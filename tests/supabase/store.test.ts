/** What is special about locks over HTTP: rights, refusals in words, and sharing a table with the PostgreSQL store. */
import { PostgrestClient } from '@supabase/postgrest-js';
import { createLocks, InvalidArgumentError, UnsupportedError } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import type { Claim } from 'holdfast/protocol';
import { supabaseStore } from 'holdfast/supabase';
import { available, startProxy } from 'holdfast-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientAt, jwtOf, openScene, type Role, type Scene } from './scene.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const CLAIM = {
  kind: 'claim',
  owner: 'somebody',
  permits: 1,
  capacity: 1,
  ttlMs: 30_000,
  queue: false,
  inbox: null,
  metadata: null,
} as const;

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
    scene = await openScene({ own: true });
  });
  afterAll(() => scene?.stop());

  it.each<Role>(['anon', 'authenticated'])('%s is refused, and told which key to use', async (role) => {
    const locks = createLocks(supabaseStore(scene.client(role)));
    const refused = locks.acquire(fresh());
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/service-role key/);
    await expect(locks.inspect('job')).rejects.toThrow(/service-role key/);
    await locks.close();
    for (const table of ['records', 'locks', 'migrations']) {
      const { error } = await scene.client(role).schema('holdfast').from(table).select();
      expect(error?.code).toBe('42501');
    }
    const { error } = await scene
      .client(role)
      .schema('holdfast')
      .rpc('acquire_lock', { p_lock_name: 'a', p_holder_id: 'b' });
    expect(error?.code).toBe('42501');
  });

  it.each([
    [
      'signed by another',
      () => jwtOf({ role: 'service_role' }, 'another secret, of more than thirty-two letters'),
    ],
    ['run out', () => jwtOf({ role: 'service_role', exp: 1_000 })],
    ['that is none', () => 'nonsense'],
    ['for a role that is not there', () => jwtOf({ role: 'nobody_at_all' })],
  ])('a key %s is refused in words', async (_, token) => {
    const locks = createLocks(supabaseStore(clientAt(scene.postgrest.url, token())));
    const refused = locks.acquire(fresh());
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/service-role key/);
    await locks.close();
  });

  it('a schema that is not exposed, or not there, is refused with what to do', async () => {
    const client = scene.client('service_role');
    const hidden = createLocks(supabaseStore(client, { schema: 'elsewhere' }));
    await expect(hidden.acquire(fresh())).rejects.toThrow(
      /expose the schema "elsewhere" in the project's API settings/,
    );
    await hidden.close();
    const empty = createLocks(supabaseStore(client, { schema: 'public' }));
    const refused = empty.acquire(fresh());
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/migrate\(client, \{ supabase: true \}\)/);
    await empty.close();
  });

  it('what is no client is refused at once', () => {
    for (const wrong of [null, undefined, {}, 'https://project.supabase.co'] as unknown[]) {
      expect(() => supabaseStore(wrong as PostgrestClient)).toThrow(InvalidArgumentError);
    }
    const client = scene.client('service_role');
    expect(() => supabaseStore(client, { schema: 'a$b' })).toThrow(InvalidArgumentError);
    expect(() => supabaseStore(client, { scheme: 'a' } as object)).toThrow(/no option "scheme"/);
  });

  it('a client with the types of a project fits', async () => {
    const { url } = scene.postgrest;
    const headers = { Authorization: `Bearer ${jwtOf({ role: 'service_role' })}` };
    const locks = createLocks(supabaseStore(new PostgrestClient<Generated>(url, { headers })));
    await (await locks.acquire(fresh())).release();
    await locks.close();
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
    await Promise.all(fleet.map((locks) => locks.close()));
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
    await locks.close();
  });

  it('F7: with PostgREST down, a lease is kept until its end, nothing is taken for busy, and work resumes', async () => {
    const proxy = await startProxy({ host: scene.postgrest.host, port: scene.postgrest.port });
    const client = clientAt(`http://${proxy.host}:${proxy.port}`, jwtOf({ role: 'service_role' }));
    const locks = createLocks(supabaseStore(client));
    const held = await locks.acquire(fresh(), { ttl: '20s' });
    proxy.cut();
    await expect(locks.tryAcquire(fresh())).rejects.toMatchObject({ code: 'store' });
    expect(held.held).toBe(true);
    const waiting = locks.acquire(fresh(), { wait: '30s' });
    await pause(500);
    proxy.pass();
    await (await waiting).release();
    await held.renew();
    await held.release();
    await locks.close();
    await proxy.stop();
  });

  it('P14: while PostgREST hangs, the signal aborts at the deadline; killed and started again, work goes on', async () => {
    const { postgrest } = scene;
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    const name = fresh();
    const lease = await locks.acquire(name, { ttl: '2s' });
    await postgrest.pause();
    const began = performance.now();
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve, { once: true }));
    // Never after the ttl; what is left of it is for a machine under load.
    expect(performance.now() - began).toBeLessThan(2_500);
    expect(lease.held).toBe(false);
    const waiting = locks.acquire(name, { wait: '60s' });
    await postgrest.kill();
    await postgrest.restart();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
    await locks.close();
  }, 90_000);

  it('F7: a restart of the database behind it costs no lock', async () => {
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    const lease = await locks.acquire(fresh(), { ttl: '30s' });
    await scene.server.restart();
    await expect
      .poll(
        () =>
          lease.renew('40s').then(
            () => true,
            () => false,
          ),
        { timeout: 25_000, interval: 200 },
      )
      .toBe(true);
    await (await locks.acquire(fresh(), { wait: '30s' })).release();
    expect(lease.held).toBe(true);
    await lease.release();
    await locks.close();
  }, 90_000);

  it('F4: an answer lost on its way is asked for again, and is the same grant', async () => {
    const proxy = await startProxy({ host: scene.postgrest.host, port: scene.postgrest.port });
    const client = clientAt(`http://${proxy.host}:${proxy.port}`, jwtOf({ role: 'service_role' }));
    const locks = createLocks(supabaseStore(client));
    const name = fresh();
    proxy.loseReplies(1);
    const lease = await locks.acquire(name, { wait: '20s' });
    const { rows } = await scene.pool.query('SELECT token FROM holdfast.locks WHERE name = $1', [name]);
    expect(rows.map(({ token }) => Number(token))).toEqual([lease.token]);
    await lease.release();
    await locks.close();
    await proxy.stop();
  });

  it('F30: a row that a long transaction has locked holds up nobody else in the batch', async () => {
    const store = supabaseStore(scene.client('service_role'));
    const keys = [fresh(), fresh(), fresh()];
    const hold = { process: 'somebody', number: 1 };
    const claims = keys.map((key): Claim => ({ ...CLAIM, key, hold }));
    await Promise.all(store.apply(claims));
    const stubborn = await scene.pool.connect();
    try {
      await stubborn.query('BEGIN');
      await stubborn.query('SELECT FROM holdfast.records WHERE key = $1 FOR UPDATE', [keys[1]]);
      const renewals = keys.map(
        (key) => ({ kind: 'renew', key, hold, ttlMs: 60_000, block: false }) as const,
      );
      for (let round = 0; round < 2; round++) {
        const outcomes = await Promise.allSettled(store.apply(renewals));
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      }
    } finally {
      await stubborn.query('ROLLBACK');
      stubborn.release();
    }
    await store.close();
  });

  it('says what the project promises', async () => {
    const store = supabaseStore(scene.client('service_role'));
    const { server, findings } = await store.probe();
    expect(server).toMatch(/PostgreSQL \d+.*PostgREST/);
    expect(findings.map(({ text }) => text).join(' ')).toMatch(/fsync is off.*HTTP brings no hints/);
    await store.close();
  });

  it('migrating with supabase: true later gives the rights then, and may be done again', async () => {
    const schema = 'later';
    await migrate(scene.pool, { schema });
    const rights = "SELECT has_schema_privilege('service_role', 'later', 'USAGE') AS service";
    expect((await scene.pool.query(rights)).rows).toEqual([{ service: false }]);
    for (let round = 0; round < 2; round++) {
      expect(await migrate(scene.pool, { schema, supabase: true })).toEqual({ from: 1, to: 1 });
      expect((await scene.pool.query(rights)).rows).toEqual([{ service: true }]);
    }
    const { rows } = await scene.pool.query(
      "SELECT bool_and(relrowsecurity) AS safe FROM pg_class WHERE relnamespace = 'later'::regnamespace AND relkind = 'r'",
    );
    expect(rows).toEqual([{ safe: true }]);
  });

  it('the service role needs no right to pass row-level security', async () => {
    await scene.pool.query('ALTER ROLE service_role NOBYPASSRLS');
    try {
      const locks = createLocks(supabaseStore(scene.client('service_role')));
      const lease = await locks.acquire(fresh());
      await lease.release();
      await locks.close();
    } finally {
      await scene.pool.query('ALTER ROLE service_role BYPASSRLS');
    }
  });
});
