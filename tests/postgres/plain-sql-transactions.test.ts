/** Plain SQL inside longer transactions, and what the view shows. */
import { createLocks, type Locks } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.runIf(available('postgres'))('plain SQL in transactions, and the view', () => {
  let server: PostgresServer;
  let url: string;
  let pool: pg.Pool;
  let locks: Locks;
  let names = 0;
  const fresh = (): string => `job:${names++}`;
  const clients: pg.Client[] = [];

  beforeAll(async () => {
    server = await startPostgres();
    url = await server.createDatabase();
    pool = new pg.Pool({ connectionString: url, max: 10 });
    // A server that stops says so to connections that are closing.
    pool.on('error', () => undefined);
    await migrate(pool);
    locks = createLocks(postgresStore(pool));
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end();
  });
  afterAll(async () => {
    await locks?.close();
    await pool?.end();
    await server?.stop();
  });

  async function session(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    clients.push(client);
    return client;
  }

  async function got(
    client: pg.Client | pg.Pool,
    text: string,
    ...values: readonly unknown[]
  ): Promise<unknown> {
    const { rows } = await client.query<{ got: unknown }>(`SELECT ${text} AS got`, [...values]);
    return rows[0]?.got;
  }

  it('a transaction rolled back has locked nothing', async () => {
    const name = fresh();
    const anna = await session();
    await anna.query('BEGIN');
    expect(await got(anna, "holdfast.acquire_lock($1, 'anna')", name)).toBe(true);
    await anna.query('ROLLBACK');
    expect(await got(pool, "holdfast.acquire_lock($1, 'bert')", name)).toBe(true);
  });

  it('while a transaction has the row, others learn nothing wrong; afterwards they see who has it', async () => {
    const name = fresh();
    const anna = await session();
    await anna.query('BEGIN');
    expect(await got(anna, "holdfast.acquire_lock($1, 'anna')", name)).toBe(true);
    const asked = got(await session(), "holdfast.acquire_lock($1, 'bert')", name);
    // Longer than the library waits for a row: who has only this answer waits for it, as for any row.
    await pause(600);
    await anna.query('COMMIT');
    expect(await asked).toBe(false);
    const impatient = await session();
    await anna.query('BEGIN');
    await got(anna, "holdfast.extend_lock($1, 'anna', 60)", name);
    await impatient.query("SET lock_timeout = '50ms'");
    await expect(got(impatient, "holdfast.release_lock($1, 'anna')", name)).rejects.toMatchObject({
      code: '55P03',
    });
    await anna.query('COMMIT');
    expect(await got(pool, "holdfast.acquire_lock($1, 'bert')", name)).toBe(false);
    expect(await got(pool, "holdfast.release_lock($1, 'anna')", name)).toBe(true);
  });

  it('time goes on inside a transaction: a lock taken there expires there', async () => {
    const name = fresh();
    const anna = await session();
    await anna.query('BEGIN');
    await got(anna, "holdfast.acquire_lock($1, 'anna', 1)", name);
    await pause(1_100);
    expect(await got(anna, "holdfast.extend_lock($1, 'anna', 60)", name)).toBe(false);
    expect(await got(anna, "holdfast.lock_token($1, 'anna')", name)).toBeNull();
    await anna.query('COMMIT');
    expect(await got(pool, "holdfast.acquire_lock($1, 'bert')", name)).toBe(true);
  });

  it("leaves the transaction's own settings as they were", async () => {
    const anna = await session();
    await anna.query("BEGIN; SET LOCAL lock_timeout = '12345ms'; SET LOCAL search_path = pg_temp");
    expect(await got(anna, "holdfast.acquire_lock($1, 'anna')", fresh())).toBe(true);
    expect(await got(anna, "current_setting('lock_timeout')")).toBe('12345ms');
    expect(await got(anna, "current_setting('search_path')")).toBe('pg_temp');
    await anna.query('COMMIT');
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    '%s is refused with a hint: an old view of the world gives no second holder',
    async (level) => {
      for (const before of ['nobody', 'a holder now gone']) {
        const name = fresh();
        if (before !== 'nobody') {
          await got(pool, "holdfast.acquire_lock($1, 'zoe')", name);
          await got(pool, "holdfast.release_lock($1, 'zoe')", name);
        }
        const bert = await session();
        await bert.query(`BEGIN ISOLATION LEVEL ${level}`);
        await bert.query('SELECT count(*) FROM holdfast.records');
        expect(await got(pool, "holdfast.acquire_lock($1, 'anna')", name)).toBe(true);
        await expect(got(bert, "holdfast.acquire_lock($1, 'bert')", name)).rejects.toMatchObject({
          code: '0A000',
          hint: 'Begin it with ISOLATION LEVEL READ COMMITTED.',
        });
        await bert.query('ROLLBACK');
        expect(await got(bert, "holdfast.acquire_lock($1, 'bert')", name)).toBe(false);
      }
    },
  );

  it('the view shows who holds, who waits and what is in its cool-down, and never a hold or an inbox', async () => {
    const name = fresh();
    await got(pool, `holdfast.acquire_lock($1, 'anna', 60, '{"job": 7}')`, name);
    const first = createLocks(postgresStore(pool), { owner: 'first' });
    const second = createLocks(postgresStore(pool), { owner: 'second' });
    const waiting = [first.acquire(name, { wait: '20s' })];
    const isThere = (count: number): Promise<void> =>
      expect
        .poll(() => got(pool, '(SELECT count(*)::int FROM holdfast.locks WHERE name = $1)', name))
        .toBe(count);
    await isThere(2);
    waiting.push(second.acquire(name, { wait: '20s' }));
    await isThere(3);
    const { rows, fields } = await pool.query(
      'SELECT * FROM holdfast.locks WHERE name = $1 ORDER BY role, position',
      [name],
    );
    expect(fields.map((field) => field.name)).toEqual(
      'key namespace name role owner token permits capacity acquired_at expires_at metadata position'.split(
        ' ',
      ),
    );
    expect(rows).toMatchObject([
      {
        key: `default/${name}`,
        namespace: 'default',
        role: 'holder',
        owner: 'anna',
        metadata: { job: 7 },
        position: null,
      },
      { role: 'waiter', owner: 'first', token: null, position: '0' },
      { role: 'waiter', owner: 'second', token: null, position: '1' },
    ]);
    expect(rows[0].expires_at - rows[0].acquired_at).toBe(60_000);
    const { rows: records } = await pool.query('SELECT * FROM holdfast.records WHERE key = $1', [
      `default/${name}`,
    ]);
    const secrets = JSON.stringify(records).match(/"(?:inbox|process)":"[^"]{12,}"/g) ?? [];
    expect(secrets.length).toBeGreaterThan(0);
    const shown = JSON.stringify(rows);
    for (const secret of secrets) expect(shown).not.toContain(secret.split(':')[1]);
    await got(pool, "holdfast.release_lock($1, 'anna')", name);
    for (const lease of waiting) await (await lease).release();
    await Promise.all([first.close(), second.close()]);
    const rested = fresh();
    await (await locks.acquire(rested, { minHold: '30s' })).release();
    expect(await got(pool, '(SELECT role FROM holdfast.locks WHERE name = $1)', rested)).toBe('rest');
  });

  it('what has expired is not shown, and metadata that jsonb cannot hold hides nothing', async () => {
    const name = fresh();
    await got(pool, "holdfast.acquire_lock($1, 'anna', 1)", name);
    const odd = await locks.acquire(fresh(), { metadata: { text: 'a\u0000b' } });
    await pause(1_100);
    const { rows } = await pool.query('SELECT name, metadata FROM holdfast.locks WHERE name IN ($1, $2)', [
      name,
      odd.key,
    ]);
    expect(rows).toEqual([{ name: odd.key, metadata: JSON.stringify({ text: 'a\u0000b' }) }]);
    await odd.release();
  });
});
