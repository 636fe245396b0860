import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createLocks, StoreError, UnsupportedError } from 'holdfast';
import { migrate, migrationSql, postgresStore } from 'holdfast/postgres';
import { available, type PostgresServer, startPgbouncer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { NEWER, scriptOf } from '../../packages/holdfast/src/stores/postgres/migration-script.js';
import { MIGRATIONS } from '../../packages/holdfast/src/stores/postgres/migrations.js';

const run = promisify(execFile);
const ODD = `we"ird \\%I 'schéma; -- x`;

describe.runIf(available('postgres'))('migrating PostgreSQL', () => {
  let server: PostgresServer;
  const opened: { end(): Promise<void> }[] = [];

  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.end();
  });
  afterAll(() => server?.stop());

  function pool(connectionString: string, more: pg.PoolConfig = {}): pg.Pool {
    const made = new pg.Pool({ connectionString, max: 2, ...more });
    // A server that stops says so to connections that are closing.
    made.on('error', () => undefined);
    opened.push(made);
    return made;
  }

  async function fresh(): Promise<{ readonly url: string; readonly admin: pg.Pool }> {
    const url = await server.createDatabase();
    return { url, admin: pool(url) };
  }

  it('makes the schema once; the second time it finds it', async () => {
    const { admin } = await fresh();
    expect(await migrate(admin)).toEqual({ from: 0, to: 1 });
    expect(await migrate(admin)).toEqual({ from: 1, to: 1 });
    const { rows } = await admin.query('SELECT version FROM holdfast.migrations ORDER BY version');
    expect(rows).toEqual([{ version: 1 }]);
  });

  it('works with a Client of pg, and with postgres', async () => {
    const { url, admin } = await fresh();
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    opened.push(client);
    expect(await migrate(client)).toEqual({ from: 0, to: 1 });
    const notices: unknown[] = [];
    const sql = postgres(url, { max: 1, onnotice: (notice) => notices.push(notice) });
    opened.push(sql);
    expect(await migrate(sql)).toEqual({ from: 1, to: 1 });
    expect(await migrate(sql, { schema: 'schema_other' })).toEqual({ from: 0, to: 1 });
    expect(await migrate(client, { schema: 'schema_one' })).toEqual({ from: 0, to: 1 });
    expect(notices).toEqual([]);
    expect(await layoutOf(admin, 'schema_other')).toEqual(await layoutOf(admin, 'schema_one'));
  });

  it.each(['read committed', 'repeatable read', 'serializable'])(
    'eight at once are fine, also where transactions are %s',
    async (isolation) => {
      const { url } = await fresh();
      const options = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`;
      const pools = Array.from({ length: 8 }, () => pool(url, { options }));
      const results = await Promise.all(pools.map((each) => migrate(each)));
      expect(results.filter(({ from }) => from === 0)).toHaveLength(1);
      expect(results.every(({ to }) => to === 1)).toBe(true);
    },
  );

  it('F15: works through a pooler in transaction mode', async (context) => {
    if (!available('pgbouncer')) context.skip();
    const { url } = await fresh();
    const pooler = await startPgbouncer({ target: url, mode: 'transaction' });
    try {
      const results = await Promise.all([1, 2, 3].map(() => migrate(pool(pooler.url))));
      expect(results.map(({ from }) => from).sort()).toEqual([0, 1, 1]);
    } finally {
      for (const client of opened.splice(0)) await client.end();
      await pooler.stop();
    }
  });

  it('leaves a connection usable after a failure, and nothing half done', async () => {
    const { url, admin } = await fresh();
    await admin.query(`
      CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no views here'; END $$;
      CREATE EVENT TRIGGER no_views ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION public.refuse()`);
    const single = pool(url, { max: 1 });
    const failed = migrate(single);
    await expect(failed).rejects.toThrow(StoreError);
    await expect(failed).rejects.toThrow(/no views here/);
    const { rows } = await single.query("SELECT to_regnamespace('holdfast') AS made");
    expect(rows).toEqual([{ made: null }]);
  });

  it('works where PL/pgSQL is set to refuse what is doubtful', async () => {
    const { url } = await fresh();
    const strict = pool(url, { options: '-c plpgsql.extra_errors=all' });
    expect(await migrate(strict)).toEqual({ from: 0, to: 1 });
    const locks = createLocks(postgresStore(strict));
    await (await locks.all(['one', 'two']).acquire()).release();
    await locks.close();
  });

  it('in a transaction of the caller it is part of that', async () => {
    const { url, admin } = await fresh();
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    opened.push(client);
    await client.query('BEGIN');
    expect(await migrate(client)).toEqual({ from: 0, to: 1 });
    await client.query('ROLLBACK');
    expect((await admin.query("SELECT to_regnamespace('holdfast') AS made")).rows).toEqual([{ made: null }]);
  });

  it('a schema of any name is quoted wherever it is named', async () => {
    const { admin } = await fresh();
    expect(await migrate(admin, { schema: ODD, supabase: true })).toEqual({ from: 0, to: 1 });
    expect(await migrate(admin, { schema: ODD, supabase: true })).toEqual({ from: 1, to: 1 });
    const name = pg.escapeIdentifier(ODD);
    const { rows } = await admin.query(`SELECT ${name}.acquire_lock('job', 'anna') AS got`);
    expect(rows).toEqual([{ got: true }]);
    expect((await admin.query(`SELECT name, owner FROM ${name}.locks`)).rows).toEqual([
      { name: 'job', owner: 'anna' },
    ]);
  });

  it.each(['', 'a$b', 'a\nb', 'x'.repeat(64)])('refuses the schema name %j', async (schema) => {
    expect(() => migrationSql({ schema })).toThrow(/schema/);
  });

  it('refuses a database that a newer library has migrated, and changes nothing', async () => {
    const { admin } = await fresh();
    await migrate(admin);
    await admin.query('INSERT INTO holdfast.migrations (version) VALUES (99)');
    const refused = migrate(admin);
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/version 99.*up to 1.*upgrade this one/);
  });

  it('tells a user without the right to create what to grant', async () => {
    const { url, admin } = await fresh();
    const role = `plain_${Math.random().toString(36).slice(2)}`;
    await admin.query(`CREATE ROLE ${role} LOGIN`);
    const limited = new URL(url);
    limited.username = role;
    const user = pool(limited.href);
    const refused = migrate(user);
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(`GRANT CREATE ON DATABASE ${limited.pathname.slice(1)} TO ${role}`);
    await expect(refused).rejects.toThrow('migrationSql()');
    await migrate(admin);
    await expect(migrate(user)).rejects.toThrow(/permission denied for schema holdfast/);
    await admin.query(
      `GRANT USAGE ON SCHEMA holdfast TO ${role}; GRANT SELECT ON holdfast.migrations TO ${role}`,
    );
    expect(await migrate(user)).toEqual({ from: 1, to: 1 });
  });

  it('goes from version to version, each of them once, however many ask', async () => {
    const { url, admin } = await fresh();
    const later = [2, 3].map((version) => ({
      version,
      sql: (schema: string) => `CREATE TABLE "${schema}".step_${version} (made integer)`,
    }));
    const steps = [...MIGRATIONS, ...later];
    await admin.query(scriptOf(steps.slice(0, 1), 'steps', false));
    const options = '-c default_transaction_isolation=serializable';
    const upgrades = Array.from({ length: 8 }, () =>
      pool(url, { options }).query(scriptOf(steps, 'steps', false)),
    );
    for (const upgrade of await Promise.allSettled(upgrades)) {
      // Who saw an older moment has done nothing, and may ask again.
      if (upgrade.status === 'rejected') expect(upgrade.reason).toMatchObject({ code: '40001' });
    }
    const { rows } = await admin.query('SELECT version FROM steps.migrations ORDER BY version');
    expect(rows).toEqual([{ version: 1 }, { version: 2 }, { version: 3 }]);
    await expect(admin.query(scriptOf(steps.slice(0, 2), 'steps', false))).rejects.toMatchObject({
      code: NEWER,
    });
  });

  it.each([false, true])(
    'what the printed SQL says to grant is enough, with supabase: %s',
    async (supabase) => {
      const { url, admin } = await fresh();
      const role = `user_${Math.random().toString(36).slice(2)}`;
      const asRole = new URL(url);
      asRole.username = role;
      await admin.query(`CREATE ROLE ${role} LOGIN`);
      await migrate(admin, { supabase });
      const user = pool(asRole.href);
      await expect(createLocks(postgresStore(user)).acquire('job')).rejects.toThrow(UnsupportedError);
      const grants = migrationSql({ supabase }).match(/^-- +(?:GRANT|CREATE) .*;$/gm) ?? [];
      expect(grants).toHaveLength(supabase ? 5 : 4);
      for (const grant of grants) await admin.query(grant.slice(2).replaceAll('somebody', role));
      const locks = createLocks(postgresStore(user));
      const lease = await locks.acquire('job');
      expect((await user.query("SELECT holdfast.acquire_lock('job', 'anna') AS got")).rows).toEqual([
        { got: false },
      ]);
      expect((await user.query('SELECT name FROM holdfast.locks')).rows).toEqual([{ name: 'job' }]);
      await lease.release();
      expect((await user.query("SELECT holdfast.acquire_lock('job', 'anna') AS got")).rows).toEqual([
        { got: true },
      ]);
      await locks.close({ drain: 0 });
    },
  );

  describe('the printed SQL', () => {
    it('gives the same schema as migrate, run as a text', async () => {
      const { admin } = await fresh();
      await migrate(admin, { schema: 'schema_one' });
      await admin.query(migrationSql({ schema: 'schema_two' }));
      await admin.query(migrationSql({ schema: 'schema_two' }));
      expect(await layoutOf(admin, 'schema_two')).toEqual(await layoutOf(admin, 'schema_one'));
      expect(await migrate(admin, { schema: 'schema_two' })).toEqual({ from: 1, to: 1 });
    });

    it('can be sent with the extended protocol, as many migration tools do', async () => {
      const { admin } = await fresh();
      await admin.query({ text: migrationSql(), name: 'prepared' });
      expect(await migrate(admin)).toEqual({ from: 1, to: 1 });
    });

    it('can be fed to psql as it is', async (context) => {
      const { url, admin } = await fresh();
      const fed = feed(url, migrationSql({ supabase: true }));
      if ((await fed) === 'no psql') context.skip();
      expect(await migrate(admin)).toEqual({ from: 1, to: 1 });
      await admin.query('INSERT INTO holdfast.migrations (version) VALUES (99)');
      await expect(feed(url, migrationSql())).rejects.toThrow(/upgrade this one/);
    });
  });
});

async function feed(url: string, sql: string): Promise<string> {
  const fed = run('psql', [url, '--no-psqlrc', '--set', 'ON_ERROR_STOP=1', '--quiet']);
  fed.child.stdin?.end(sql);
  try {
    return (await fed).stdout;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    // On somebody's machine it is skipped; a run that must be whole fails.
    if (isMissing && process.env.CI !== 'true') return 'no psql';
    throw error;
  }
}

/** Columns, functions and views, without the schema's name. */
async function layoutOf(admin: pg.Pool, schema: string): Promise<string> {
  const { rows } = await admin.query<{ what: string }>(
    `SELECT format('%s.%s %s %s', table_name, column_name, data_type, column_default) AS what
       FROM information_schema.columns WHERE table_schema = $1
     UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace
     UNION ALL SELECT pg_get_viewdef(oid) FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'v'
     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1
     ORDER BY 1`,
    [schema],
  );
  expect(rows.length).toBeGreaterThan(10);
  return rows
    .map(({ what }) => what.replaceAll(`"${schema}"`, 'S').replaceAll(`${schema}.`, 'S.'))
    .join('\n');
}
