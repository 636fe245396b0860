/** A database whose other users mean no good, or whose settings are odd. */
import { migrate, migrationSql, postgresStore } from 'holdfast/postgres';
import { UnsupportedError } from 'holdfast/protocol';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

/** What a name without a schema may be taken for: an exact match of types goes before the order of the path. */
const TRAPS = [
  ['hashtextextended(a text, b integer)', 'bigint', 'pg_catalog.hashtextextended(a, b::bigint)'],
  ['to_jsonb(a text)', 'jsonb', 'pg_catalog.to_jsonb(a)'],
  ['numeric_times(a numeric, b integer)', 'numeric', 'a OPERATOR(pg_catalog.*) b::numeric'],
  ['float_over(a float8, b integer)', 'float8', 'a OPERATOR(pg_catalog./) b::float8'],
] as const;
const OPERATORS = `
  CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.numeric_times);
  CREATE OPERATOR public./ (LEFTARG = float8, RIGHTARG = integer, FUNCTION = public.float_over);`;

/** What `postgres(url)` gives, as far as it is used: every statement fails in the same way. */
function failing(code: string) {
  const counted = { listens: 0 };
  const client = Object.assign(() => undefined, {
    unsafe: () => Promise.reject(Object.assign(new Error(code), { code })),
    listen: async () => {
      counted.listens += 1;
      return { unlisten: async () => undefined };
    },
  });
  return { client, counted };
}

describe('listening through postgres', () => {
  it.each([
    { code: '57014', what: 'a statement that took too long', listens: 1 },
    { code: '55P03', what: 'a row that was locked', listens: 1 },
    { code: 'EPIPE', what: 'a connection that is gone', listens: 2 },
    { code: '57P01', what: 'a server that goes', listens: 2 },
  ])('after $what ($code) it was begun $listens times', async ({ code, listens }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { client, counted } = failing(code);
    const store = postgresStore(client);
    await store.listen?.('inbox', () => undefined);
    const release = { kind: 'release', key: 'k', hold: { process: 'p', number: 1 }, minHoldMs: 0 } as const;
    await Promise.allSettled(store.apply([release]));
    await vi.advanceTimersByTimeAsync(10_000);
    await store.close();
    expect(counted.listens).toBe(listens);
  });
});

describe.runIf(available('postgres'))('PostgreSQL with others in it', () => {
  let server: PostgresServer;
  let url: string;
  let client: pg.Client;

  beforeAll(async () => {
    server = await startPostgres();
    url = await server.createDatabase();
    client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  async function sprung(): Promise<readonly string[]> {
    const { rows } = await client.query<{ name: string }>('DELETE FROM public.sprung RETURNING name');
    return rows.map(({ name }) => name);
  }

  it('functions and operators that others made in the path are never called', async () => {
    await client.query('CREATE TABLE public.sprung (name text)');
    for (const [signature, type, value] of TRAPS) {
      await client.query(`CREATE FUNCTION public.${signature} RETURNS ${type} LANGUAGE plpgsql AS $trap$
        BEGIN INSERT INTO public.sprung VALUES ('${signature}'); RETURN ${value}; END $trap$`);
    }
    await client.query(OPERATORS);
    await client.query("SELECT hashtextextended('a', 0), 1.5 * 2");
    expect(await sprung(), 'the traps work').toHaveLength(2);

    await migrate(client, { supabase: true });
    expect(await sprung(), 'migrate').toEqual([]);
    await client.query(
      `SELECT holdfast.acquire_lock('k', 'o'), holdfast.extend_lock('k', 'o', 50), holdfast.lock_token('k', 'o')`,
    );
    // What jsonb cannot hold takes the other way through the view.
    await client.query(`UPDATE holdfast.records SET metadata = 'no JSON'`);
    expect((await client.query('SELECT * FROM holdfast.locks')).rows).toHaveLength(1);
    expect(await sprung(), 'plain SQL and the view').toEqual([]);
    const store = postgresStore(client, { listener: false });
    await store.probe();
    await store.read('default/k');
    await store.close();
    expect(await sprung(), 'the store').toEqual([]);
  });

  it.each(['a BEGIN that is under way', 'a Client that cannot tell'])(
    'F7: a claim that becomes part of a transaction is never a grant: %s',
    async (mode) => {
      const mine = new pg.Client({ connectionString: url });
      await mine.connect();
      const awaited = mode === 'a Client that cannot tell';
      if (awaited) Object.assign(mine, { getTransactionStatus: undefined });
      await migrate(client);
      const store = postgresStore(mine, { listener: false });
      const begin = mine.query('BEGIN');
      if (awaited) await begin;
      const hold = { process: mode, number: 1 };
      const [said] = store.apply([
        {
          kind: 'claim',
          key: mode,
          hold,
          owner: 'o',
          permits: 1,
          capacity: 1,
          ttlMs: 9_000,
          queue: false,
          inbox: null,
          metadata: null,
        },
      ]);
      await expect(said).rejects.toThrow(/inside a transaction/);
      await mine.query('ROLLBACK');
      expect(await store.read(mode)).toBeNull();
      await mine.end();
    },
  );

  it('a statement that the server ends by its statement_timeout was not executed', async () => {
    const pool = new pg.Pool({ connectionString: url, statement_timeout: 100 });
    pool.on('error', () => undefined);
    await migrate(client);
    const store = postgresStore(pool, { listener: false });
    await client.query("SELECT holdfast.acquire_lock('slow', 'somebody')");
    const hold = { process: 'sql:somebody', number: 1 };
    await client.query('BEGIN');
    try {
      await client.query("SELECT FROM holdfast.records WHERE key = 'default/slow' FOR UPDATE");
      const [renewal] = store.apply([
        { kind: 'renew', key: 'default/slow', hold, ttlMs: 60_000, block: false },
      ]);
      await expect(renewal).rejects.toMatchObject({
        name: 'NotExecutedError',
        message: expect.stringMatching(/statement_timeout/),
      });
    } finally {
      await client.query('ROLLBACK');
      await pool.end();
    }
  });

  it("a migration leaves the caller's search_path as it was", async () => {
    await client.query('BEGIN');
    await client.query('SET LOCAL search_path = public, pg_temp');
    await client.query(migrationSql({ schema: 'elsewhere' }));
    const { rows } = await client.query('SHOW search_path');
    await client.query('COMMIT');
    expect(rows).toEqual([{ search_path: 'public, pg_temp' }]);
  });

  it('a database in another encoding takes the letters that it has, and refuses others at once', async () => {
    await client.query(
      `CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    );
    const there = new URL(url);
    there.pathname = '/latin1';
    const latin = new pg.Client({ connectionString: there.href });
    await latin.connect();
    try {
      await migrate(latin);
      const { rows } = await latin.query("SELECT holdfast.acquire_lock('é', 'zoë') AS got");
      expect(rows).toEqual([{ got: true }]);
      const store = postgresStore(latin, { listener: false });
      expect(await store.read('default/é')).toMatchObject({ holders: [{ owner: 'zoë' }] });
      const release = { kind: 'release', hold: { process: 'p', number: 1 }, minHoldMs: 0 } as const;
      const [fine, refused] = store.apply([
        { ...release, key: 'ä' },
        { ...release, key: 'ж' },
      ]);
      await expect(refused).rejects.toThrow(UnsupportedError);
      expect(await fine).toMatchObject({ kind: 'released' });
      await store.close();
    } finally {
      await latin.end();
      await client.query('DROP DATABASE latin1');
    }
  });

  it('in a database without an encoding, plain SQL takes ASCII names, and refuses others', async () => {
    await client.query(
      `CREATE DATABASE bytes ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    );
    const there = new URL(url);
    there.pathname = '/bytes';
    const bytes = new pg.Client({ connectionString: there.href });
    await bytes.connect();
    try {
      await migrate(bytes);
      const { rows } = await bytes.query("SELECT holdfast.acquire_lock('job', 'zoe') AS got");
      expect(rows).toEqual([{ got: true }]);
      for (const name of ['a\u0328', 'straße']) {
        const locking = bytes.query("SELECT holdfast.acquire_lock($1, 'zoe')", [name]);
        await expect(locking).rejects.toThrow(/lock name has letters beyond ASCII/);
      }
    } finally {
      await bytes.end();
      await client.query('DROP DATABASE bytes');
    }
  });
});
