/** What is special about the table `distributed_locks`: its rows, its functions and odd rows. */
import { createLocks, LeaseLostError, openStore, UnsupportedError } from 'holdfast';
import { migrate, migrationSql, postgresStore } from 'holdfast/postgres';
import { distributedLocks } from 'holdfast/postgres/layouts';
import type { Command } from 'holdfast/protocol';
import { available } from 'holdfast-test-servers';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { distributedLocks as distributedLocksTable } from '../../packages/holdfast/src/stores/postgres/tables/distributed-locks.js';
import { sqlOf } from '../../packages/holdfast/src/stores/postgres/tables/row-sql.js';
import { shortRaceCase } from './cases-race.js';
import { claimOf, estimatesAgree, freshName, listed, locksOf, say } from './fleet.js';
import { DistributedLocks } from './foreign-distributed-locks.js';
import { openFleet } from './postgres-fleet.js';
import { DISTRIBUTED_LOCKS } from './postgres-software.js';

describe.runIf(available('postgres'))('the table distributed_locks', () => {
  const fleet = openFleet(DISTRIBUTED_LOCKS);
  shortRaceCase(() => fleet);

  const insert = (name: string, holder: string, acquired: string, expires: string, more = "'{}'") =>
    fleet.pool.query(
      `INSERT INTO distributed_locks (lock_name, holder_id, acquired_at, expires_at, metadata) VALUES ($1, $2, ${acquired}, ${expires}, ${more})`,
      [name, holder],
    );

  it('a lock of Holdfast is a row that the functions read, and keeps out of it what they need not know', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: '20s', metadata: { step: 4 } });
    const held = await fleet.record(name);
    expect(held).toMatchObject({ metadata: { step: 4 } });
    expect(held?.holder_id).toMatch(/^holdfast-[0-9a-f]{40} our-worker$/);
    expect(Number(held?.expires_at)).toBe(lease.expiresAt.getTime());
    expect(JSON.stringify(held)).toContain(String(lease.token));
    await lease.release();
    const free = await fleet.record(name);
    expect(free).toMatchObject({ holder_id: 'holdfast-free', metadata: {} });
    expect(Number(free?.expires_at)).toBeLessThan(Date.now() - 3_600_000);
    const next = await locks.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it('an uncontended claim, renewal and release are one statement each, also on a row that another process released', async () => {
    const name = freshName();
    let statements = 0;
    const client = {
      query: (query: pg.QueryConfig) => {
        // Clean-up, and a look at the clock after a pause of this process, have no values.
        if ((query.values ?? []).length > 0) statements += 1;
        return fleet.pool.query(query);
      },
    };
    const store = postgresStore(client, { layout: distributedLocks });
    const counted = async (command: Command): Promise<readonly unknown[]> => {
      const before = statements;
      const { kind } = await say(store, command);
      return [kind, statements - before];
    };
    const claim = claimOf(name, 5_000);
    const release = { kind: 'release', key: claim.key, hold: claim.hold, minHoldMs: 0 } as const;
    const renew = { kind: 'renew', key: claim.key, hold: claim.hold, ttlMs: 6_000, block: false } as const;
    expect(await counted(claim)).toEqual(['granted', 1]);
    expect(await counted(renew)).toEqual(['renewed', 1]);
    expect(await counted(release)).toEqual(['released', 1]);
    await (await locksOf(fleet).acquire(name)).release();
    await estimatesAgree();
    expect(await counted(claimOf(name, 5_000))).toEqual(['granted', 1]);
  });

  it('grants, renewals, cool-downs and evictions wait for the disk, and no other release does', async () => {
    const settings: string[] = [];
    const client = {
      async query(query: pg.QueryConfig) {
        const connection = await fleet.pool.connect();
        try {
          await connection.query('BEGIN');
          const result = await connection.query(query);
          const shown = await connection.query('SHOW synchronous_commit');
          await connection.query('COMMIT');
          settings.push(shown.rows[0]?.synchronous_commit);
          return result;
        } finally {
          connection.release();
        }
      },
    };
    const store = postgresStore(client, { layout: distributedLocks });
    const setting = async (command: Command): Promise<string | undefined> => {
      await say(store, command);
      return settings.at(-1);
    };
    const release = ({ key, hold }: Command & { kind: 'claim' }, minHoldMs = 0): Command => ({
      kind: 'release',
      key,
      hold,
      minHoldMs,
    });
    const one = claimOf(freshName(), 30_000);
    expect(await setting(one)).toBe('on');
    expect(await setting({ kind: 'renew', key: one.key, hold: one.hold, ttlMs: 40_000, block: false })).toBe(
      'on',
    );
    expect(await setting(release(one))).toBe('off');
    const two = claimOf(freshName(), 30_000);
    expect(await setting(two)).toBe('on');
    expect(await setting(release(two, 60_000))).toBe('on');
    const three = claimOf(freshName(), 30_000);
    expect(await setting(three)).toBe('on');
    expect(await setting({ kind: 'evict', key: three.key, upToToken: Number.MAX_SAFE_INTEGER })).toBe('on');
    await store.close();
  });

  it('the functions replace a free row and an expired row of ours, and our tokens still rise', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name);
    await lease.release();
    const theirs = await fleet.foreign().acquire(name, 'their-worker', 30_000);
    expect(await fleet.record(name)).toMatchObject({ holder_id: 'their-worker', holdfast: null });
    expect(await locks.tryAcquire(name)).toBeNull();
    await theirs?.release();
    await estimatesAgree();
    const next = await locks.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it('a row that the functions extend, or acquire again, under our holder is no longer ours', async () => {
    for (const verb of ['extend', 'acquire'] as const) {
      const name = freshName();
      const locks = locksOf(fleet);
      const lease = await locks.acquire(name);
      const { holder_id: holder } = (await fleet.record(name)) ?? {};
      const theirs = new DistributedLocks(fleet.pool);
      if (verb === 'extend') expect(await theirs.lockOf(name, String(holder)).heartbeat(90_000)).toBe(true);
      else expect(await theirs.acquire(name, String(holder), 90_000)).not.toBeNull();
      await expect(lease.renew()).rejects.toThrow(LeaseLostError);
      await lease.release();
      expect(await locks.tryAcquire(name)).toBeNull();
      expect(await theirs.lockOf(name, String(holder)).release()).toBe(true);
      await (await locks.acquire(name)).release();
    }
  });

  it('metadata that others change while we hold stays, also through a renewal', async () => {
    const name = freshName();
    const lease = await locksOf(fleet).acquire(name, { metadata: { step: 4 } });
    await fleet.change(name, `metadata = '{"seen": true}'`);
    await lease.renew();
    expect((await fleet.record(name))?.metadata).toEqual({ seen: true });
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('metadata that jsonb cannot have is kept for Holdfast alone', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const metadata = { zero: '\u0000', half: '\ud800', text: '"ä"' };
    const lease = await locks.acquire(name, { metadata });
    expect((await fleet.record(name))?.metadata).toEqual({});
    expect((await locksOf(fleet).inspect(name))?.holders[0]?.metadata).toEqual(metadata);
    await lease.release();
  });

  it('a deleted row is a lost lease, and the next token is higher', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name, { renew: false });
    await fleet.forget(name);
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    await estimatesAgree();
    const next = await locks.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it('odd rows: times without end and of other ages, empty or strange metadata', async () => {
    const locks = locksOf(fleet);
    const held: readonly (readonly [string, string, string?])[] = [
      ['now()', "'infinity'"],
      ["'-infinity'", "'infinity'", 'NULL'],
      ["'-infinity'", "now() + interval '1 hour'", `'[1, "x", null]'`],
      ["'0044-03-15 BC'", "'294000-01-01'", `'"text"'`],
      ["now() + interval '1 day'", "now() + interval '2 days'", "'7'"],
      ["'2020-01-01 00:00:00+14'", "now() + interval '61 minutes'"],
    ];
    for (const [acquired, expires, metadata] of held) {
      const name = freshName();
      await insert(name, 'somebody', acquired, expires, metadata);
      const before = await fleet.record(name);
      expect([acquired, await locks.tryAcquire(name)]).toEqual([acquired, null]);
      const [holder] = (await locks.inspect(name))?.holders ?? [];
      expect(holder?.owner).toBe('somebody');
      expect(Number.isNaN(holder?.expiresAt.getTime())).toBe(false);
      expect(await fleet.record(name)).toEqual(before);
      // Written over only because every column is still what was read.
      expect([acquired, await locks.evict(name)]).toEqual([acquired, 1]);
      expect(await fleet.record(name)).toMatchObject({ holder_id: 'holdfast-free', metadata: {} });
    }
    const over = [
      ["'-infinity'", "'0044-03-15 BC'"],
      ["'1969-07-20'", "'1969-07-21'"],
      ["now() - interval '2 days'", "now() - interval '1 microsecond'"],
    ] as const;
    for (const [acquired, expires] of over) {
      const name = freshName();
      await insert(name, 'somebody', acquired, expires, 'NULL');
      await using lease = await locks.acquire(name);
      expect(lease.held).toBe(true);
    }
  });

  it('our column with anything else in it is a row of the other software; a newer format is refused', async () => {
    const locks = locksOf(fleet);
    for (const json of ['null', '[]', '7', '"text"', '{"other": true}']) {
      const name = freshName();
      await insert(name, 'somebody', 'now()', "now() + interval '1 hour'");
      await fleet.change(name, `holdfast = '${json}'`);
      expect(await locks.tryAcquire(name)).toBeNull();
      await fleet.change(
        name,
        "acquired_at = now() - interval '2 hours', expires_at = now() - interval '1 hour'",
      );
      await (await locks.acquire(name)).release();
    }
    const name = freshName();
    await insert(name, 'somebody', 'now()', "now() + interval '1 hour'");
    await fleet.change(name, `holdfast = '{"version": 99}'`);
    const before = await fleet.record(name);
    await expect(locks.tryAcquire(name)).rejects.toThrow('has format 99');
    expect(await fleet.record(name)).toEqual(before);
  });

  it('names and owners as they are: up to 255 letters, of any kind', async () => {
    const locks = locksOf(fleet, { owner: 'o'.repeat(250) });
    for (const name of ['x'.repeat(255), '🔒'.repeat(60), "it's; DROP TABLE", 'a b\\c%_"', 'job:123/größe']) {
      const lease = await locks.acquire(name);
      expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).toBeNull();
      expect([...String((await fleet.record(name))?.holder_id)].length).toBeLessThanOrEqual(255);
      await lease.release();
    }
    await expect(locks.tryAcquire('x'.repeat(256))).rejects.toThrow(UnsupportedError);
    await expect(locks.tryAcquire('x'.repeat(256))).rejects.toThrow('too long');
    await expect(locksOf(fleet, { namespace: 'billing' }).tryAcquire('job')).rejects.toThrow('no namespaces');
  });

  it('no time zone, format of dates, isolation level or column of the table matters', async () => {
    await fleet.pool.query('ALTER TABLE distributed_locks ADD COLUMN team text DEFAULT $$none$$');
    const settings = [
      ['America/St_Johns', 'SQL, DMY', 'serializable'],
      ['Asia/Kathmandu', 'Postgres, MDY', 'repeatable read'],
      ['UTC', 'German', 'read committed'],
    ] as const;
    const all = settings.map(([zone, style, level]) => {
      const quoted = [zone, style, level].map((text) => text.replaceAll(' ', '\\ '));
      const options = `-c timezone=${quoted[0]} -c datestyle=${quoted[1]} -c default_transaction_isolation=${quoted[2]}`;
      return createLocks(postgresStore(fleet.openPool({ options }), { layout: distributedLocks }));
    });
    const name = freshName();
    let last = 0;
    for (const locks of [...all, ...all.toReversed()]) {
      const lease = await locks.acquire(name, { wait: '10s' });
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      for (const other of all) if (other !== locks) expect(await other.tryAcquire(name)).toBeNull();
      await lease.renew();
      await lease.release();
    }
    const counts = await Promise.all(
      all.map(async (locks) => {
        let inside = 0;
        for (let turn = 0; turn < 5; turn++)
          await locks.withLock(`${name}-race`, () => inside++, { wait: '60s' });
        return inside;
      }),
    );
    expect(counts).toEqual([5, 5, 5]);
    await Promise.all(all.map((locks) => locks.close()));
  });

  it('a row that another transaction keeps locked delays its own lock only, and says so', async () => {
    const [name, other] = [freshName(), freshName()];
    const store = fleet.store();
    await say(store, claimOf(name, 50));
    const client = await fleet.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('SELECT FROM distributed_locks WHERE lock_name = $1 FOR UPDATE', [name]);
      const blocked = expect(say(fleet.store(), claimOf(name, 5_000))).rejects.toThrow('locked for too long');
      expect(await say(store, claimOf(other, 5_000))).toMatchObject({ kind: 'granted' });
      await blocked;
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
    await (await locksOf(fleet).acquire(name, { wait: '10s' })).release();
  });

  it('clean-up deletes old rows of ours, and none of other software, whatever its holders are called', async () => {
    const day = "now() - interval '9 days'";
    const old = `${day} + interval '1 minute'`;
    const locks = locksOf(fleet);
    const ours = [freshName(), freshName()];
    const [released, held] = ours;
    await (await locks.acquire(released ?? '')).release();
    await say(fleet.store(), claimOf(held ?? '', 5_000));
    for (const name of ours) await fleet.change(name, `acquired_at = ${day}, expires_at = ${old}`);
    const theirs = ['holdfast-worker-3', 'holdfast-free', `holdfast-${'a'.repeat(40)} x`].map((holder) => ({
      name: freshName(),
      holder,
    }));
    for (const { name, holder } of theirs) await insert(name, holder, day, old);
    // Software that updates rows leaves our column in them.
    const updated = freshName();
    await (await locks.acquire(updated)).release();
    await fleet.change(updated, `holder_id = 'holdfast-worker-3', acquired_at = ${day}, expires_at = ${old}`);
    const place = { layout: distributedLocksTable, schema: 'public', table: 'distributed_locks' };
    await fleet.pool.query(sqlOf(place).cleanUp(1_000));
    for (const name of ours) expect(await fleet.record(name)).toBeNull();
    for (const { name, holder } of theirs)
      expect(await fleet.record(name)).toMatchObject({ holder_id: holder });
    expect(await fleet.record(updated)).toMatchObject({ holder_id: 'holdfast-worker-3' });
  });

  it('opens by URL, migrates by URL, and lists locks of both kinds', async () => {
    const database = await fleet.server.createDatabase();
    const url = `${database}?layout=distributed-locks&table=app_locks`;
    const early = await openStore(url);
    await expect(say(early, claimOf('job', 1_000))).rejects.toThrow(
      /app_locks.* is not ready.*layout=distributed-locks/s,
    );
    await early.close();
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    const place = { layout: distributedLocks, table: 'app_locks' };
    expect(await migrate(client, place)).toEqual({ from: 0, to: 1 });
    expect(await migrate(client, place)).toEqual({ from: 1, to: 1 });
    await client.query(migrationSql(place));
    await client.end();
    const store = await openStore(url);
    const locks = createLocks(store);
    await using lease = await locks.acquire('job');
    expect((await listed(locks, '')).map(({ key }) => key)).toEqual(['job']);
    expect(lease.held).toBe(true);
    expect((await store.probe()).findings.map(({ text }) => text).join()).toContain(
      "Time is the server's clock",
    );
    await locks.close();
  });

  it('a table without the column, or another table, is refused with advice', async () => {
    const place = { layout: distributedLocks, table: 'bare' };
    await fleet.pool.query('CREATE TABLE bare (lock_name text PRIMARY KEY)');
    const bare = postgresStore(fleet.pool, place);
    await expect(say(bare, claimOf('job', 1_000))).rejects.toThrow(/is not ready for Holdfast/);
    await expect(bare.probe()).rejects.toThrow(/is not ready for Holdfast/);
    await fleet.pool.query('CREATE TABLE zoneless (lock_name text PRIMARY KEY, expires_at timestamp)');
    const zoneless = migrate(fleet.pool, { ...place, table: 'zoneless' });
    await expect(zoneless).rejects.toThrow(/"zoneless" has times without a time zone.*timestamptz/);
    await fleet.pool.query('CREATE TABLE rounded (lock_name text PRIMARY KEY, expires_at timestamptz(0))');
    const rounded = migrate(fleet.pool, { ...place, table: 'rounded' });
    await expect(rounded).rejects.toThrow(
      /"rounded" has times that are not exact to the millisecond.*timestamptz/,
    );
    for (const options of [
      { layout: 'distributed-locks' },
      { layout: { ...distributedLocks, store: 'dynamodb' } },
      { table: 'locks' },
      { layout: distributedLocks, listener: () => new pg.Client() },
      { layout: distributedLocks, table: '' },
    ]) {
      expect(() => postgresStore(fleet.pool, options as never)).toThrow(/layout|table/);
    }
    await expect(migrate(fleet.pool, { layout: distributedLocks, supabase: true })).rejects.toThrow(
      'supabase',
    );
  });
});
