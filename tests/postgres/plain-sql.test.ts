/** The lock from plain SQL, as psql or another language would use it, beside holders of the library. */
import { createLocks, type Locks } from 'holdfast';
import { migrate, postgresStore } from 'holdfast/postgres';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSIONS } from './versions.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(VERSIONS)('locks from plain SQL, PostgreSQL %s', (version) => {
  const it = test.runIf(available(`postgres-${version}`));

  let server: PostgresServer;
  let pool: pg.Pool;
  let locks: Locks;
  let names = 0;
  const fresh = (): string => `job:${names++}`;

  beforeAll(async () => {
    if (!available(`postgres-${version}`)) return;
    server = await startPostgres({ version });
    pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 40 });
    // A server that stops says so to connections that are closing.
    pool.on('error', () => undefined);
    await migrate(pool);
    locks = createLocks(postgresStore(pool));
  });
  afterAll(async () => {
    await locks?.close();
    await pool?.end();
    await server?.stop();
  });

  /** The only value of a query's only row. */
  async function ask(text: string, ...values: readonly unknown[]): Promise<unknown> {
    const { rows } = await pool.query<Record<string, unknown>>(text, [...values]);
    expect(rows).toHaveLength(1);
    return Object.values(rows[0] ?? {})[0];
  }
  const acquire = (name: string, holder: string, ttl = 30): Promise<unknown> =>
    ask('SELECT holdfast.acquire_lock($1, $2, $3)', name, holder, ttl);
  const release = (name: string, holder: string): Promise<unknown> =>
    ask('SELECT holdfast.release_lock($1, $2)', name, holder);
  const extend = (name: string, holder: string, seconds: number): Promise<unknown> =>
    ask('SELECT holdfast.extend_lock($1, $2, $3)', name, holder, seconds);
  const secondsLeft = async (name: string): Promise<number> =>
    Number(
      await ask(
        'SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM holdfast.locks WHERE name = $1',
        name,
      ),
    );

  it('one has it and the other has not; only the one gives it back', async () => {
    const name = fresh();
    expect(await ask('SELECT holdfast.acquire_lock($1, $2)', name, 'anna')).toBe(true);
    expect(await secondsLeft(name)).toBeGreaterThan(25);
    expect(await acquire(name, 'bert')).toBe(false);
    expect(await release(name, 'bert')).toBe(false);
    expect(await release(name, 'anna')).toBe(true);
    expect(await release(name, 'anna')).toBe(false);
    expect(await acquire(name, 'bert')).toBe(true);
    expect(await acquire(name, 'anna')).toBe(false);
  });

  it('acquired again by its holder it lasts longer, and never shorter', async () => {
    const name = fresh();
    await acquire(name, 'anna', 10);
    expect(await acquire(name, 'anna', 60)).toBe(true);
    expect(await secondsLeft(name)).toBeGreaterThan(50);
    expect(await acquire(name, 'anna', 1)).toBe(true);
    expect(await secondsLeft(name)).toBeGreaterThan(50);
    expect(await release(name, 'anna')).toBe(true);
    expect(await acquire(name, 'bert')).toBe(true);
  });

  it('extended it lasts so long from now, but only while it is held', async () => {
    const name = fresh();
    expect(await extend(name, 'anna', 60)).toBe(false);
    await acquire(name, 'anna', 1);
    expect(await extend(name, 'bert', 60)).toBe(false);
    expect(await extend(name, 'anna', 60)).toBe(true);
    expect(await secondsLeft(name)).toBeGreaterThan(50);
    const short = fresh();
    await acquire(short, 'anna', 1);
    await pause(1_100);
    expect(await extend(short, 'anna', 60)).toBe(false);
    expect(await release(short, 'anna')).toBe(false);
  });

  it('P2: what has expired goes to the next, who alone may give it back', async () => {
    const name = fresh();
    await acquire(name, 'anna', 1);
    expect(await acquire(name, 'bert')).toBe(false);
    await pause(1_100);
    expect(await acquire(name, 'bert')).toBe(true);
    expect(await release(name, 'anna')).toBe(false);
    expect(await acquire(name, 'anna')).toBe(false);
    expect(await release(name, 'bert')).toBe(true);
  });

  it('P8: extended by one and taken by another at the moment of its end, it has one holder', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const name = fresh();
        await acquire(name, 'anna', 2);
        await pause(Math.max(0, 1_000 * (await secondsLeft(name)) - 15 + index));
        return await Promise.all([extend(name, 'anna', 60), acquire(name, 'bert')]);
      }),
    );
    for (const [extended, taken] of outcomes) expect([extended, taken]).not.toEqual([true, true]);
    expect(outcomes.some(([, taken]) => taken === true)).toBe(true);
  });

  it('the same holder may come back as often as it likes, and its token rises', async () => {
    const name = fresh();
    let last = 0;
    for (let round = 0; round < 5; round++) {
      expect(await acquire(name, round % 2 === 0 ? 'anna' : 'bert', 1)).toBe(true);
      const token = Number(
        await ask('SELECT holdfast.lock_token($1, $2)', name, round % 2 === 0 ? 'anna' : 'bert'),
      );
      expect(token).toBeGreaterThan(last);
      last = token;
      if (round === 2) await pause(1_100);
      else expect(await release(name, round % 2 === 0 ? 'anna' : 'bert')).toBe(true);
    }
    expect(await ask('SELECT holdfast.lock_token($1, $2)', name, 'anna')).toBeNull();
    const { rows } = await pool.query(
      'SELECT holdfast.acquire_lock($1, $2) AS got, holdfast.lock_token($1, $2) AS token',
      [name, 'anna'],
    );
    expect(rows[0]?.got).toBe(true);
    expect(Number(rows[0]?.token)).toBeGreaterThan(last);
  });

  it('after its lock expired a holder may take it again, as a new holder', async () => {
    const name = fresh();
    await acquire(name, 'anna', 1);
    const first = await ask('SELECT holdfast.lock_token($1, $2)', name, 'anna');
    await pause(1_100);
    expect(await acquire(name, 'anna')).toBe(true);
    expect(Number(await ask('SELECT holdfast.lock_token($1, $2)', name, 'anna'))).toBeGreaterThan(
      Number(first),
    );
  });

  it('of forty sessions at once one gets it', async () => {
    for (let round = 0; round < 5; round++) {
      const name = fresh();
      const got = await Promise.all(
        Array.from({ length: 40 }, (_, session) => acquire(name, `session ${session}`)),
      );
      expect(got.filter((one) => one === true)).toHaveLength(1);
    }
  });

  it('the same holder in forty sessions at once never fails, and has one hold', async () => {
    const name = fresh();
    const got = await Promise.all(Array.from({ length: 40 }, (_, n) => acquire(name, 'anna', 30 + n)));
    expect(got.every((one) => one === true)).toBe(true);
    const { rows } = await pool.query('SELECT token FROM holdfast.locks WHERE name = $1', [name]);
    expect(rows).toHaveLength(1);
    expect(await secondsLeft(name)).toBeGreaterThan(60);
  });

  it('the same holder in many sessions is never told that another has the lock', async () => {
    const name = fresh();
    const session = async (): Promise<void> => {
      for (let round = 0; round < 40; round++) {
        expect(await acquire(name, 'anna')).toBe(true);
        await release(name, 'anna');
      }
    };
    await Promise.all(Array.from({ length: 8 }, session));
  });

  it('excludes the library, and the library excludes it', async () => {
    const name = fresh();
    const lease = await locks.acquire(name);
    expect(await acquire(name, 'anna')).toBe(false);
    await lease.release();
    expect(await acquire(name, 'anna')).toBe(true);
    const token = Number(await ask('SELECT holdfast.lock_token($1, $2)', name, 'anna'));
    expect(token).toBeGreaterThan(lease.token);
    expect(await locks.tryAcquire(name)).toBeNull();
    expect((await locks.inspect(name))?.holders.map(({ owner }) => owner)).toEqual(['anna']);
    const waiting = locks.acquire(name, { wait: '20s' });
    await pause(300);
    expect(await release(name, 'anna')).toBe(true);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(token);
    expect(await release(name, 'anna')).toBe(false);
    expect(next.held).toBe(true);
    await next.release();
  });

  it('does not overtake those who wait in the queue', async () => {
    const name = fresh();
    const lease = await locks.acquire(name);
    const other = createLocks(postgresStore(pool));
    const waiting = other.acquire(name, { wait: '20s' });
    await expect
      .poll(() => ask("SELECT count(*)::int FROM holdfast.locks WHERE name = $1 AND role = 'waiter'", name))
      .toBe(1);
    await lease.release();
    const early = await acquire(name, 'anna');
    const next = await waiting;
    expect(early).toBe(false);
    await next.release();
    await other.close();
  });

  it('another namespace is another lock', async () => {
    const name = fresh();
    const billing = createLocks(postgresStore(pool), { namespace: 'billing' });
    const lease = await billing.acquire(name);
    expect(await acquire(name, 'anna')).toBe(true);
    const inBilling =
      "SELECT holdfast.acquire_lock(p_lock_name => $1, p_holder_id => $2, p_namespace => 'billing')";
    expect(await ask(inBilling, name, 'anna')).toBe(false);
    await lease.release();
    expect(await ask(inBilling, name, 'anna')).toBe(true);
    expect(await ask("SELECT holdfast.extend_lock($1, 'anna', 5, 'billing')", name)).toBe(true);
    expect(await ask("SELECT holdfast.release_lock($1, 'anna', 'billing')", name)).toBe(true);
    await billing.close();
  });

  it('F17: two spellings of one letter are one lock, here and in the library', async () => {
    const name = fresh();
    expect(await acquire(`${name} caf\u00e9`, 'anna')).toBe(true);
    expect(await acquire(`${name} cafe\u0301`, 'bert')).toBe(false);
    expect(await locks.tryAcquire(`${name} cafe\u0301`)).toBeNull();
  });

  it.each([
    ['an empty name', "SELECT holdfast.acquire_lock('', 'anna')", /lock name is empty/],
    ['no name', "SELECT holdfast.acquire_lock(NULL, 'anna')", /lock name is empty/],
    ['an empty holder', "SELECT holdfast.acquire_lock('job', '')", /holder id is empty/],
    ['a name too long', "SELECT holdfast.acquire_lock(repeat('é', 257), 'anna')", /longer than 512 bytes/],
    ['a holder too long', "SELECT holdfast.acquire_lock('job', repeat('x', 257))", /longer than 256 bytes/],
    ['control characters', "SELECT holdfast.acquire_lock(E'a\\nb', 'anna')", /control characters/],
    ['a ttl of nothing', "SELECT holdfast.acquire_lock('job', 'anna', 0)", /p_ttl_seconds is '0'/],
    ['a ttl of weeks', "SELECT holdfast.acquire_lock('job', 'anna', 604801)", /604800/],
    ['no ttl', "SELECT holdfast.acquire_lock('job', 'anna', NULL)", /p_ttl_seconds is NULL/],
    ['a negative extension', "SELECT holdfast.extend_lock('job', 'anna', -1)", /p_additional_seconds/],
    ['metadata that is no object', "SELECT holdfast.acquire_lock('job', 'anna', 30, '[]')", /JSON object/],
    [
      'a long metadata',
      "SELECT holdfast.acquire_lock('job', 'anna', 30, jsonb_build_object('a', repeat('x', 5000)))",
      /4096 bytes/,
    ],
    [
      'a namespace with a slash',
      "SELECT holdfast.release_lock('job', 'anna', 'a/b')",
      /namespace 'a\/b' is invalid/,
    ],
  ])('refuses %s', async (_, text, message) => {
    await expect(pool.query(text)).rejects.toThrow(message);
  });

  it('a long name and one with odd letters are the ones the library means', async () => {
    for (const name of ['x'.repeat(512), `${fresh()}'"\\ %/_😀`]) {
      const lease = await locks.acquire(name);
      expect(await acquire(name, 'anna')).toBe(false);
      await lease.release();
    }
  });
});
