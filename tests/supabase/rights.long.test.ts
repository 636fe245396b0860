/** Who may use the locks over HTTP, and what everybody else is told. */
import type { PostgrestClient } from '@supabase/postgrest-js';
import { createLocks, InvalidArgumentError, UnsupportedError } from 'holdfast';
import { migrate } from 'holdfast/postgres';
import { supabaseStore } from 'holdfast/supabase';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientAt, jwtOf, openScene, type Role, type Scene } from './scene.js';

describe.runIf(available('postgres') && available('postgrest'))('rights in the Supabase store', () => {
  let scene: Scene;
  let names = 0;
  const fresh = (): string => `job:${names++}`;

  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  it.each<Role>(['anon', 'authenticated'])('%s is refused, and told which key to use', async (role) => {
    const locks = createLocks(supabaseStore(scene.client(role)));
    const refused = locks.acquire(fresh());
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/service-role key/);
    await expect(locks.inspect('job')).rejects.toThrow(/service-role key/);
    await locks.close({ drain: 0 });
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
    await locks.close({ drain: 0 });
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
      await locks.close({ drain: 0 });
    } finally {
      await scene.pool.query('ALTER ROLE service_role BYPASSRLS');
    }
  });

  it('visitors who were granted everything later still see and change nothing', async () => {
    const locks = createLocks(supabaseStore(scene.client('service_role')));
    const name = fresh();
    const lease = await locks.acquire(name);
    await scene.pool.query(`
      GRANT USAGE ON SCHEMA holdfast TO anon; GRANT ALL ON ALL TABLES IN SCHEMA holdfast TO anon;
      GRANT ALL ON ALL FUNCTIONS IN SCHEMA holdfast TO anon`);
    const visitor = scene.client('anon').schema('holdfast');
    try {
      for (const table of ['records', 'locks', 'migrations']) {
        expect((await visitor.from(table).select()).data).toEqual([]);
      }
      const args = { p_lock_name: name, p_holder_id: 'visitor' };
      expect((await visitor.rpc('acquire_lock', args)).error?.code).toBe('42501');
      await expect(createLocks(supabaseStore(scene.client('anon'))).acquire(name)).rejects.toThrow(
        /service-role key/,
      );
      expect(lease.held).toBe(true);
      await lease.renew();
    } finally {
      await migrate(scene.pool, { supabase: true });
    }
    expect((await visitor.from('locks').select()).error?.code).toBe('42501');
    await locks.close({ drain: 0 });
  });

  it('a PostgREST that runs already learns of the migration', async () => {
    const young = await openScene({ migrated: false });
    try {
      const locks = createLocks(supabaseStore(young.client('service_role')));
      await expect(locks.acquire('job')).rejects.toThrow(/expose the schema "holdfast"/);
      await migrate(young.pool, { supabase: true });
      const acquired = (): Promise<boolean> =>
        locks.tryAcquire('job').then(
          (lease) => lease !== null,
          () => false,
        );
      await expect.poll(acquired, { interval: 100 }).toBe(true);
      await locks.close({ drain: 0 });
    } finally {
      await young.stop();
    }
  });
});
