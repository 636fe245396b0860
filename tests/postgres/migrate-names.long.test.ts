/** What is in a schema already, beside what Holdfast makes there. */
import { UnsupportedError } from 'holdfast';
import { migrate } from 'holdfast/postgres';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { functionsOf, RELATIONS } from '../../packages/holdfast/src/stores/postgres/sql/names.js';

/** With the arguments that a well-known recipe for locks in PostgreSQL gives them. */
const RECIPE = `
CREATE TABLE public.distributed_locks (lock_name varchar(255) PRIMARY KEY, holder_id varchar(255));
CREATE FUNCTION public.acquire_lock(
  p_lock_name varchar, p_holder_id varchar, p_ttl_seconds integer DEFAULT 30, p_metadata jsonb DEFAULT '{}'
) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION public.release_lock(p_lock_name varchar, p_holder_id varchar)
  RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION public.extend_lock(p_lock_name varchar, p_holder_id varchar, p_additional_seconds integer)
  RETURNS boolean LANGUAGE sql AS $$ SELECT true $$`;

const CATALOG = `
SELECT 'relation ' || oid::regclass || ' ' || coalesce(relacl::text, '') || relrowsecurity AS what
  FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'function ' || oid::regprocedure || ' ' || prosrc || coalesce(proacl::text, '')
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'type ' || oid::regtype FROM pg_type WHERE typnamespace = 'public'::regnamespace
ORDER BY 1`;

describe.runIf(available('postgres'))('migrating into a schema that has other things', () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  const schema = 'public';

  beforeAll(async () => {
    server = await startPostgres();
  });
  beforeEach(async () => {
    pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 2 });
    pool.on('error', () => undefined);
  });
  afterEach(() => pool.end());
  afterAll(() => server?.stop());

  const catalog = async (): Promise<unknown> => (await pool.query(CATALOG)).rows;

  it.each([false, true])(
    'refuses functions of its names that take other arguments, and changes nothing, with supabase: %s',
    async (supabase) => {
      await pool.query(RECIPE);
      const before = await catalog();
      const refused = migrate(pool, { schema, supabase });
      await expect(refused).rejects.toThrow(UnsupportedError);
      await expect(refused).rejects.toThrow(
        /"public" has something else.*function acquire_lock\(character varying, character varying, integer, jsonb\), function extend_lock.*function release_lock.*Choose a schema.*Nothing was changed/s,
      );
      expect(await catalog()).toEqual(before);
      expect(await migrate(pool, { supabase }), 'in a schema of its own').toEqual({ from: 0, to: 1 });
      expect(await catalog()).toEqual(before);
    },
  );

  it('refuses a second function of one of its names that came later', async () => {
    await migrate(pool, { schema });
    await pool.query(RECIPE);
    const before = await catalog();
    for (const supabase of [false, true]) {
      const refused = migrate(pool, { schema, supabase });
      await expect(refused).rejects.toThrow(
        /function acquire_lock\(character varying.*drop or rename the other/s,
      );
      await expect(refused).rejects.not.toThrow(/function acquire_lock\(text/);
    }
    expect(await catalog()).toEqual(before);
  });

  it.each([
    [
      'a function with the very same arguments',
      `CREATE FUNCTION public.apply(jsonb, integer, boolean) RETURNS jsonb LANGUAGE sql AS 'SELECT $1'`,
      /function apply\(jsonb, integer, boolean\)/,
    ],
    [
      'an aggregate',
      'CREATE AGGREGATE public.list(text) (SFUNC = textcat, STYPE = text)',
      /function list\(text\)/,
    ],
    [
      'a table of versions',
      'CREATE TABLE public.migrations (version integer, applied_at timestamptz); INSERT INTO public.migrations VALUES (2024)',
      /table migrations/,
    ],
    ['a table', 'CREATE TABLE public.records (key text)', /table records/],
    ['a table by the name of the view', 'CREATE TABLE public.locks (key text)', /table locks/],
    ['a view', 'CREATE VIEW public.records AS SELECT 1 AS key', /view records/],
    ['a composite type', 'CREATE TYPE public._draft AS (a integer)', /type _draft/],
    ['an enum', `CREATE TYPE public.records AS ENUM ('a')`, /type records/],
    [
      'an index',
      'CREATE TABLE public.other (a integer); CREATE INDEX records_delete_after ON public.other (a)',
      /index records_delete_after/,
    ],
  ])('refuses %s under a name that it needs, and changes nothing', async (_, sql, words) => {
    await pool.query(sql);
    const before = await catalog();
    const refused = migrate(pool, { schema, supabase: true });
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(words);
    expect(await catalog()).toEqual(before);
  });

  it('gets along with a table whose array type has a name that it needs', async () => {
    await pool.query('CREATE TABLE public.draft (a integer)');
    expect(await migrate(pool, { schema })).toEqual({ from: 0, to: 1 });
    expect(await migrate(pool, { schema })).toEqual({ from: 1, to: 1 });
    await pool.query('INSERT INTO public.draft SELECT (r).a FROM unnest(ARRAY[ROW(1)::public.draft]) AS r');
    const { rows } = await pool.query("SELECT public.acquire_lock('report', 'anna') AS got");
    expect(rows).toEqual([{ got: true }]);
  });

  it('knows the name of everything that it makes', async () => {
    await migrate(pool, { schema: 'made' });
    const { rows: functions } = await pool.query<{ same: boolean; count: number }>(
      `SELECT bool_and(oid = ANY ($1::regprocedure[])) AS same, count(*)::integer AS count
         FROM pg_proc WHERE pronamespace = 'made'::regnamespace`,
      [functionsOf('"made"')],
    );
    expect(functions).toEqual([{ same: true, count: functionsOf('"made"').length }]);
    const { rows } = await pool.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'made'::regnamespace AND relkind IN ('r', 'v')`,
    );
    expect(rows.map(({ name }) => name).sort()).toEqual([...RELATIONS].sort());
  });
});
