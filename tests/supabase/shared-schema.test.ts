/** Locks in a schema that an application uses too: what is the application's stays as it is. */
import { createLocks } from 'holdfast';
import { migrate } from 'holdfast/postgres';
import { supabaseStore } from 'holdfast/supabase';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openScene, type Role, type Scene } from './scene.js';

/** As Supabase sets up `public`, with a table, a view, a function and a type of an application in it. */
const APPLICATION = `
GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
CREATE TABLE public.orders (id integer PRIMARY KEY);
INSERT INTO public.orders VALUES (7);
CREATE TABLE public.draft (id integer);
CREATE VIEW public.order_count AS SELECT count(*) FROM public.orders;
CREATE FUNCTION public.greet(name text) RETURNS text LANGUAGE sql AS $$ SELECT 'hello ' || name $$`;

/** Rights on the schema, and on everything in it that is not Holdfast's ($1). */
const RIGHTS_OF_OTHERS = `
SELECT relname AS name, relacl::text AS rights, relrowsecurity AS rls, reloptions::text AS options
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND oid::regclass::text <> ALL ($1)
UNION ALL SELECT proname, proacl::text, NULL, NULL
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname = 'greet'
UNION ALL SELECT nspname, nspacl::text, NULL, NULL FROM pg_namespace WHERE nspname = 'public'
ORDER BY 1`;

const OWN = [
  'migrations',
  'migrations_pkey',
  'records',
  'records_pkey',
  'records_delete_after',
  'locks',
  '_draft',
];

describe.runIf(available('postgres') && available('postgrest'))(
  'migrate with supabase in a schema that an application uses',
  () => {
    let scene: Scene;
    const rightsOfOthers = async (): Promise<unknown> =>
      (await scene.pool.query(RIGHTS_OF_OTHERS, [OWN])).rows;

    beforeAll(async () => {
      scene = await openScene({ migrated: false });
      await scene.pool.query(APPLICATION);
    });
    afterAll(() => scene?.stop());

    it('rights and row-level security of all that is the application’s stay as they were', async () => {
      const before = await rightsOfOthers();
      for (const from of [0, 1]) {
        expect(await migrate(scene.pool, { schema: 'public', supabase: true })).toEqual({ from, to: 1 });
        expect(await rightsOfOthers()).toEqual(before);
      }
      // PostgREST learns of the new functions a moment later.
      const isKnown = async (): Promise<unknown> =>
        (await scene.client('service_role').rpc('about')).error?.code ?? 'known';
      await expect.poll(isKnown, { interval: 100 }).toBe('known');
    });

    it.each<Role>(['anon', 'authenticated'])(
      '%s still reads, writes and calls what is the application’s',
      async (role) => {
        const client = scene.client(role);
        expect(await client.from('orders').select()).toMatchObject({ error: null, data: [{ id: 7 }] });
        expect(await client.from('draft').insert({ id: 1 })).toMatchObject({ error: null });
        expect(await client.from('order_count').select()).toMatchObject({
          error: null,
          data: [{ count: 1 }],
        });
        expect(await client.rpc('greet', { name: 'anna' })).toMatchObject({
          error: null,
          data: 'hello anna',
        });
      },
    );

    it.each<Role>(['anon', 'authenticated'])(
      '%s reads no table of Holdfast, and calls no function of it',
      async (role) => {
        const client = scene.client(role);
        for (const table of ['records', 'locks', 'migrations']) {
          expect((await client.from(table).select()).error?.code, table).toBe('42501');
        }
        const args = { p_lock_name: 'report', p_holder_id: 'visitor' };
        for (const name of ['acquire_lock', 'release_lock', 'lock_token']) {
          expect((await client.rpc(name, args)).error?.code, name).toBe('42501');
        }
        expect((await client.rpc('apply', { commands: [] })).error?.code).toBe('42501');
        const { rows } = await scene.pool.query(
          `SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname <> 'greet'
           AND has_function_privilege($1, oid, 'EXECUTE')`,
          [role],
        );
        expect(rows).toEqual([]);
      },
    );

    it('the service role takes locks', async () => {
      const locks = createLocks(supabaseStore(scene.client('service_role'), { schema: 'public' }));
      const lease = await locks.acquire('report');
      expect(await locks.tryAcquire('report')).toBeNull();
      expect(await scene.client('service_role').from('locks').select('name')).toMatchObject({
        data: [{ name: 'report' }],
      });
      await lease.release();
      await locks.close();
    });
  },
);
