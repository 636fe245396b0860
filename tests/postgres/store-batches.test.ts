/** What many commands do to each other: in a batch, in two batches, and beside somebody's own transactions. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from 'holdfast/protocol';
import { available, type PostgresServer, startPostgres } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, holdOf, migrated, openStoreWith, query, releaseOf, renewOf, say } from './store-scene.js';

describe.runIf(available('postgres'))('batches on PostgreSQL', () => {
  let server: PostgresServer;
  const stores: Store[] = [];

  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
    for (let index = 0; index < 3; index++) stores.push(await openStoreWith(server.url));
  });

  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await server?.stop();
  });

  const storeAt = (index: number): Store => stores[index] as Store;

  it('P8: an extension and a takeover at the moment of expiry never both succeed', async () => {
    const ttlMs = 60;
    const outcomes = { extended: 0, taken: 0 };
    for (let round = 0; round < 60; round++) {
      const key = `p8-${round}`;
      const [old, taker] = [holdOf('old'), holdOf('taker')];
      const sent = performance.now();
      const granted = await say(storeAt(0), claimOf(key, old, { ttlMs }));
      if (granted.kind !== 'granted') throw new Error(granted.kind);
      // From long before the end to just after it: how long a command takes is not known beforehand.
      await sleep(ttlMs - (performance.now() - sent) - 40 + (round % 12) * 4);
      const [renewed, taken] = await Promise.all([
        say(storeAt(1), renewOf(key, old)),
        say(storeAt(2), claimOf(key, taker)),
      ]);
      const extended = renewed.kind === 'renewed';
      const tookOver = taken.kind === 'granted';
      expect([extended, tookOver], JSON.stringify([granted, renewed, taken])).not.toEqual([true, true]);
      expect((await storeAt(0).read(key))?.holders.length ?? 0).toBeLessThanOrEqual(1);
      if (extended) outcomes.extended += 1;
      if (tookOver) outcomes.taken += 1;
    }
    expect(outcomes.extended, 'the moment was never hit from before').toBeGreaterThan(0);
    expect(outcomes.taken, 'the moment was never hit from behind').toBeGreaterThan(0);
  });

  it('rows are written in one order whatever the collation of the database, by every statement', async () => {
    const name = 'holdfast_collation';
    const icu = `LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`;
    await query(server.url, `CREATE DATABASE ${name} TEMPLATE template0 ${icu}`);
    const url = new URL(server.url);
    url.pathname = `/${name}`;
    await migrated(url.href);
    const store = await openStoreWith(url.href);
    const written = async (prefix: string): Promise<readonly string[]> => {
      const text = `SELECT key FROM holdfast.records WHERE starts_with(key, '${prefix}') ORDER BY ctid`;
      return (await query<{ key: string }>(url.href, text)).map(({ key }) => key.slice(prefix.length));
    };
    const claims = (prefix: string) =>
      ['b', 'B', 'a', 'C'].map((key) => claimOf(`${prefix}${key}`, holdOf('one')));
    try {
      await Promise.all(store.apply(claims('quick:')));
      // Two commands of one key are decided by the general case.
      await Promise.all(store.apply([...claims('general:'), claimOf('general:b', holdOf('two'))]));
      expect(await written('quick:')).toEqual(['B', 'C', 'a', 'b']);
      expect(await written('general:')).toEqual(['B', 'C', 'a', 'b']);
    } finally {
      await store.close();
    }
  });

  it('a release leaves no cool-down that nobody asked for, also after the clock was set back', async () => {
    const [held, next] = [holdOf('held'), holdOf('next')];
    await say(storeAt(0), claimOf('set-back', held));
    await query(
      server.url,
      `UPDATE holdfast.records SET acquired_at = acquired_at + 60000 WHERE key = 'set-back'`,
    );
    await say(storeAt(0), releaseOf('set-back', held));
    expect(await say(storeAt(1), claimOf('set-back', next))).toMatchObject({ kind: 'granted' });
  });

  it('a release inside a transaction that wrote something leaves its wait for the disk as it is', async () => {
    const client = new pg.Client(server.url);
    await client.connect();
    let number = 0;
    const settingAfter = async (before: string): Promise<unknown> => {
      number += 1;
      const hold = holdOf('disk', number);
      expect(await say(storeAt(0), claimOf('disk', hold))).toMatchObject({ kind: 'granted' });
      await client.query('BEGIN');
      if (before) await client.query(before);
      const commands = JSON.stringify([releaseOf('disk', hold)]);
      await client.query('SELECT holdfast.apply($1, own_transaction => true)', [commands]);
      const { rows } = await client.query('SHOW synchronous_commit');
      await client.query('ROLLBACK');
      await say(storeAt(0), releaseOf('disk', hold));
      return rows[0]?.synchronous_commit;
    };
    try {
      expect(await settingAfter('')).toBe('off');
      expect(await settingAfter('CREATE TABLE IF NOT EXISTS public.mine (id int)')).toBe('on');
    } finally {
      await client.end();
    }
  });

  it('batches with the same keys in opposite order never deadlock, present or absent', async () => {
    const deadlocks = async (): Promise<number> => {
      const text = 'SELECT deadlocks::int AS count FROM pg_stat_database WHERE datname = current_database()';
      return (await query<{ count: number }>(server.url, text))[0]?.count ?? -1;
    };
    const before = await deadlocks();
    const names = Array.from({ length: 24 }, (_, index) => `order-${index}`);
    for (let round = 0; round < 40; round++) {
      // Half of the keys are new in every round, so that insertions and updates meet.
      const keys = names.map((name, index) => (index % 2 === 0 ? name : `${name}-${round}`));
      const shuffled = [keys, keys.toReversed(), [...keys.slice(12), ...keys.slice(0, 12)]];
      const claims = await Promise.all(
        shuffled.flatMap((order, index) =>
          storeAt(index).apply(order.map((key) => claimOf(key, holdOf(`o${index}`, round + 1)))),
        ),
      );
      expect(claims.filter(({ kind }) => kind === 'granted')).toHaveLength(keys.length);
      const gone = await Promise.all(
        shuffled.flatMap((order, index) =>
          storeAt(index).apply(order.map((key) => releaseOf(key, holdOf(`o${index}`, round + 1)))),
        ),
      );
      expect(gone.filter((reply) => reply.kind === 'released' && reply.held)).toHaveLength(keys.length);
    }
    expect(await deadlocks()).toBe(before);
  });

  it('F30: a long transaction on one row costs the other commands of its batch a moment, and later batches none', async () => {
    const store = await openStoreWith(server.url);
    const user = new pg.Client({ connectionString: server.url });
    await user.connect();
    const keys = Array.from({ length: 20 }, (_, index) => `slow-${index}`);
    const renewals = (): ReturnType<Store['apply']> =>
      store.apply(keys.map((key, index) => renewOf(key, holdOf('f30', index + 1))));
    try {
      await Promise.all(store.apply(keys.map((key, index) => claimOf(key, holdOf('f30', index + 1)))));
      await user.query('BEGIN');
      await user.query("SELECT 1 FROM holdfast.records WHERE key = 'slow-7' FOR UPDATE");
      const [slow, ...others] = await settledIn(renewals(), 7);
      expect(slow?.status).toBe('rejected');
      expect(others.map(({ status }) => status)).toEqual(others.map(() => 'fulfilled'));
      const again = renewals();
      let slowSettled = false;
      again[7]?.catch(() => {
        slowSettled = true;
      });
      const quick = await Promise.all(again.filter((_, index) => index !== 7));
      expect(quick.map(({ kind }) => kind)).toEqual(quick.map(() => 'renewed'));
      expect(slowSettled, 'they waited for the locked row').toBe(false);
      await expect(again[7]).rejects.toThrow(/locked/);
      await user.query('ROLLBACK');
      const kindsAfter = (await Promise.all(renewals())).map(({ kind }) => kind);
      expect(kindsAfter).toEqual(keys.map(() => 'renewed'));
    } finally {
      await user.end();
      await store.close();
    }
  });

  it('renewals and other commands of one key in one batch keep their order', async () => {
    const hold = holdOf('mixed');
    const other = holdOf('other');
    const replies = await Promise.all(
      storeAt(0).apply([
        renewOf('mixed', hold),
        claimOf('mixed', hold),
        renewOf('mixed', hold),
        renewOf('apart', other),
        releaseOf('mixed', hold),
        renewOf('mixed', hold),
        claimOf('apart', other),
      ]),
    );
    expect(replies.map(({ kind }) => kind)).toEqual([
      'lost',
      'granted',
      'renewed',
      'lost',
      'released',
      'lost',
      'granted',
    ]);
  });

  it('what the database cannot keep fails alone', async () => {
    const results = await Promise.allSettled(
      storeAt(0).apply([
        claimOf('kept-1', holdOf('odd')),
        claimOf('a\u0000b', holdOf('odd')),
        claimOf(noise(9_000), holdOf('odd')),
        claimOf('kept-2', holdOf('odd'), { metadata: JSON.stringify(noise(4_000)) }),
      ]),
    );
    const statuses = results.map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  });

  it('a waiter that asks in vain writes nothing', async () => {
    await say(storeAt(0), claimOf('vain', holdOf('holder')));
    const waiter = claimOf('vain', holdOf('waiter'), { queue: true });
    await say(storeAt(1), waiter);
    const row = 'SELECT xmin::text, xmax::text, ctid::text, decision FROM holdfast.records WHERE key = $1';
    const before = await query(server.url, row, ['vain']);
    for (let asked = 1; asked <= 30; asked++) {
      expect((await say(storeAt(2), claimOf('vain', holdOf('passer-by', asked)))).kind).toBe('busy');
      expect((await say(storeAt(2), renewOf('vain', holdOf('passer-by', asked)))).kind).toBe('lost');
    }
    expect(await query(server.url, row, ['vain'])).toEqual(before);
    // One in the queue is noted once per second.
    const decisions = new Set<number>();
    const since = performance.now();
    for (let asked = 0; asked < 30; asked++) decisions.add((await say(storeAt(1), waiter)).decision);
    expect(decisions.size).toBeLessThanOrEqual(2 + (performance.now() - since) / 1_000);
    expect((await say(storeAt(2), renewOf('absent', holdOf('nobody')))).kind).toBe('lost');
    expect(await query(server.url, row, ['absent'])).toEqual([]);
  });
});

/** The outcome of one, then of the others. */
async function settledIn<T>(
  promises: readonly Promise<T>[],
  first: number,
): Promise<PromiseSettledResult<T>[]> {
  const results = await Promise.allSettled(promises);
  const [one] = results.splice(first, 1);
  return one ? [one, ...results] : results;
}

/** Text that does not compress. */
function noise(length: number): string {
  const parts = Array.from({ length: length / 10 }, () => Math.random().toString(36).slice(2, 12));
  return parts.join('').padEnd(length, 'x');
}
