/** Holdfast, its service under `/v1`, and LockServiceCentral on one PostgreSQL table: its rows, and one identity at both. */
import { createLocks } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import { lockServiceCentral } from 'holdfast/postgres/layouts';
import { available } from 'holdfast-test-servers';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lockServiceCentral as lockServiceCentralTable } from '../../packages/holdfast/src/stores/postgres/tables/lock-service-central.js';
import { sqlOf } from '../../packages/holdfast/src/stores/postgres/tables/row-sql.js';
import { centralCases, gate, type HeldStore, lateInstanceCase } from './cases-central.js';
import { shortRaceCase } from './cases-race.js';
import type { CentralFleet, CentralLease } from './central-fleet.js';
import { freshName, locksOf } from './fleet.js';
import type { MachineClock } from './foreign.js';
import { CentralOnPostgres } from './foreign-central-postgres.js';
import { PostgresFleet } from './postgres-fleet.js';
import { CENTRAL } from './postgres-software.js';

class CentralPostgresFleet extends PostgresFleet implements CentralFleet {
  override foreign(clock?: MachineClock): CentralOnPostgres {
    return new CentralOnPostgres(this.pool, clock);
  }

  async stored(name: string): Promise<CentralLease | null> {
    const row = await this.record(name);
    if (!row) return null;
    const { owner, instance_id: instanceId } = row;
    return { owner, instanceId, leaseDuration: Number(row.lease_duration), expiry: Number(row.expiry) };
  }

  async edit(name: string, { expiry, leaseDuration }: Partial<CentralLease>): Promise<void> {
    const columns = { expiry, lease_duration: leaseDuration };
    const set = Object.entries(columns).filter(([, value]) => value !== undefined);
    await this.change(name, set.map(([column, value]) => `${column} = ${value}`).join(', '));
  }
}

describe.runIf(available('postgres'))('the PostgreSQL table of LockServiceCentral', () => {
  const fleet = new CentralPostgresFleet(CENTRAL);
  beforeAll(() => fleet.open());
  afterAll(() => fleet.close());

  function heldStore(): HeldStore {
    const held = gate();
    const query = async (config: pg.QueryConfig): Promise<unknown> => {
      await held.pass();
      return await fleet.pool.query(config);
    };
    return { store: postgresStore({ query }, { layout: lockServiceCentral }), ...held };
  }

  shortRaceCase(() => fleet);
  centralCases(() => fleet);
  lateInstanceCase(() => fleet, heldStore);

  it('an eviction ends a lock with numbers that JavaScript cannot tell apart', async () => {
    const name = freshName();
    await fleet.foreign().acquire(name, 'their-worker', 60_000);
    await fleet.change(name, 'expiry = 9223372036854775806, lease_duration = -9007199254740993');
    const locks = locksOf(fleet);
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await locks.evict(name)).toBe(1);
    await (await locks.acquire(name)).release();
  });

  it('our column stays in a row that the service takes, and does not count', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    await (await locks.acquire(name)).release();
    expect(await fleet.foreign().acquire(name, 'their-worker', 60_000)).not.toBeNull();
    expect((await fleet.record(name))?.holdfast).toMatchObject({ version: 1 });
    expect(await locks.tryAcquire(name)).toBeNull();
  });

  it('odd rows: the first and the last expiry that a column can have, and a name of two parts', async () => {
    const locks = locksOf(fleet);
    const [last, first] = [freshName(), freshName()];
    for (const name of [last, first]) await fleet.foreign().acquire(name, 'somebody', 60_000);
    await fleet.change(last, 'expiry = 9223372036854775807');
    await fleet.change(first, 'expiry = -9223372036854775808');
    expect(await locks.tryAcquire(last)).toBeNull();
    await (await locks.acquire(first)).release();
    await fleet.pool.query(`INSERT INTO locks VALUES ('a:b:c', 'a', 'b:c', 'x', 'y', 1, 99999999999)`);
    const keys: string[] = [];
    for await (const { key } of createLocks(fleet.store(), { namespace: 'a' }).list({})) keys.push(key);
    expect(keys).toEqual([]);
  });

  it('clean-up deletes old rows of ours, and none of the service, whatever its instances are called', async () => {
    const theirs = fleet.foreign();
    const [ours, foreign, taken] = [freshName(), freshName(), freshName()];
    for (const name of [ours, taken]) await (await locksOf(fleet).acquire(name)).release();
    await theirs.acquire(foreign, 'somebody', 60_000, `holdfast-${'a'.repeat(40)}`);
    // Our column stays in a row that the service takes.
    expect(await theirs.acquire(taken, 'somebody', 60_000, 'holdfast-worker-3')).not.toBeNull();
    for (const name of [ours, foreign, taken]) await fleet.change(name, 'expiry = 1');
    const place = { layout: lockServiceCentralTable, schema: 'public', table: 'locks' };
    await fleet.pool.query(sqlOf(place).cleanUp(1_000));
    expect(await fleet.record(ours)).toBeNull();
    expect(await fleet.record(foreign)).toMatchObject({ owner: 'somebody' });
    expect(await fleet.record(taken)).toMatchObject({ instance_id: 'holdfast-worker-3' });
  });

  it('a lock that ended two seconds ago is taken over: clocks may differ by one', async () => {
    const name = freshName();
    await fleet.foreign(() => Date.now() - 3_000).acquire(name, 'somebody', 1_000);
    await (await locksOf(fleet).acquire(name, { wait: 0 })).release();
  });
});
