/** Holdfast, its service under `/v1`, and LockServiceCentral on one PostgreSQL table: its rows, and one identity at both. */
import { createLocks, LeaseLostError, UnsupportedError } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import type { InstanceLocks } from 'holdfast/protocol';
import { createService, type Service } from 'holdfast-service';
import { available } from 'holdfast-test-servers';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lockServiceCentral } from '../../packages/holdfast/src/stores/postgres/tables/lock-service-central.js';
import { sqlOf } from '../../packages/holdfast/src/stores/postgres/tables/row-sql.js';
import { shortRaceCase } from './cases-race.js';
import { freshName, locksOf } from './fleet.js';
import { CentralOnPostgres } from './foreign-central-postgres.js';
import { openFleet } from './postgres-fleet.js';
import { CENTRAL } from './postgres-software.js';

const OWNER = 'anonymous';
const [INSTANCE, OTHER] = ['instance-one', 'instance-two'];

interface Body {
  readonly success?: boolean;
  readonly owner?: string;
  readonly leaseDuration?: number;
  readonly expiry?: number;
}

describe.runIf(available('postgres'))('the PostgreSQL table of LockServiceCentral', () => {
  const fleet = openFleet(CENTRAL);
  let service: Service;
  let url: string;
  let theirs: CentralOnPostgres;

  beforeAll(async () => {
    service = createService({ store: fleet.store() });
    url = await service.listen();
    theirs = new CentralOnPostgres(fleet.pool);
  });

  afterAll(() => service?.close());

  async function say(verb: string, name: string, leaseDuration?: number, instanceId = INSTANCE) {
    const answer = await fetch(`${url}/v1/default/lock/${name}/${verb}`, {
      method: 'POST',
      body: JSON.stringify({ instanceId, leaseDuration }),
    });
    return { status: answer.status, ...((await answer.json()) as Body) };
  }

  async function look(name: string): Promise<Body> {
    return (await (await fetch(`${url}/v1/default/lock/${name}`)).json()) as Body;
  }

  async function stored(name: string) {
    const row = await fleet.record(name);
    if (!row) return null;
    const { owner, instance_id: instanceId } = row;
    return { owner, instanceId, leaseDuration: Number(row.lease_duration), expiry: Number(row.expiry) };
  }

  const instances = (): InstanceLocks => {
    const { instances: found } = fleet.store();
    if (!found) throw new Error('no instances');
    return found;
  };
  const who = { owner: OWNER, instanceId: INSTANCE };

  shortRaceCase(() => fleet);

  it('writes what the service reads: whole seconds rounded up, and a secret instance', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: 1_500 });
    const held = await stored(name);
    expect(held).toMatchObject({ owner: 'our-worker', leaseDuration: 2 });
    expect((held?.expiry ?? 0) * 1_000).toBeGreaterThanOrEqual(lease.expiresAt.getTime());
    expect(held?.instanceId).toMatch(/^holdfast-[0-9a-f]{40}$/);
    expect(await theirs.acquire(name, 'our-worker', 5_000)).toBeNull();
    await lease.release();
    expect((await stored(name))?.expiry).toBeLessThan(Date.now() / 1_000 - 3_600);
    expect(await theirs.acquire(name, 'their-worker', 5_000)).not.toBeNull();
    // Our column stays, and does not count.
    expect((await fleet.record(name))?.holdfast).toMatchObject({ version: 1 });
    expect(await locks.tryAcquire(name)).toBeNull();
  });

  it('what the service changes in a row of ours counts, though our part is still there', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name);
    const lock = theirs.lockOf(name, 'our-worker', String((await stored(name))?.instanceId));
    expect(await lock.heartbeat(60_000)).toBe(true);
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    await lease.release();
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await lock.release()).toBe(true);
    await (await locks.acquire(name)).release();
  });

  it('odd rows: expiries beyond every clock, and names that the service could not name', async () => {
    const locks = locksOf(fleet);
    for (const expiry of ['9223372036854775807', '8640000000000', '99999999999']) {
      const name = freshName();
      await theirs.acquire(name, 'somebody', 60_000);
      await fleet.change(name, `expiry = ${expiry}, lease_duration = -1`);
      const before = await fleet.record(name);
      expect(await locks.tryAcquire(name)).toBeNull();
      expect(Number.isNaN((await locks.inspect(name))?.holders[0]?.expiresAt.getTime())).toBe(false);
      expect((await say('acquire', name, 10)).status).toBe(423);
      expect(await fleet.record(name)).toEqual(before);
    }
    const past = freshName();
    await theirs.acquire(past, 'somebody', 60_000);
    await fleet.change(past, 'expiry = -9223372036854775808');
    await (await locks.acquire(past)).release();
    await fleet.pool.query(`INSERT INTO locks VALUES ('a:b:c', 'a', 'b:c', 'x', 'y', 1, 99999999999)`);
    const keys: string[] = [];
    for await (const { key } of createLocks(fleet.store(), { namespace: 'a' }).list({})) keys.push(key);
    expect(keys).toEqual([]);
    for (const name of ['job:123', 'ab', 'a b c', 'x'.repeat(65), 'größe']) {
      await expect(locks.tryAcquire(name)).rejects.toThrow(UnsupportedError);
    }
  });

  it('clean-up deletes old rows of ours, and none of the service, whatever its instances are called', async () => {
    const [ours, foreign, taken] = [freshName(), freshName(), freshName()];
    for (const name of [ours, taken]) await (await locksOf(fleet).acquire(name)).release();
    await theirs.acquire(foreign, 'somebody', 60_000, `holdfast-${'a'.repeat(40)}`);
    // Our column stays in a row that the service takes.
    expect(await theirs.acquire(taken, 'somebody', 60_000, 'holdfast-worker-3')).not.toBeNull();
    for (const name of [ours, foreign, taken]) await fleet.change(name, 'expiry = 1');
    const place = { layout: lockServiceCentral, schema: 'public', table: 'locks' };
    await fleet.pool.query(sqlOf(place).cleanUp(1_000));
    expect(await fleet.record(ours)).toBeNull();
    expect(await fleet.record(foreign)).toMatchObject({ owner: 'somebody' });
    expect(await fleet.record(taken)).toMatchObject({ instance_id: 'holdfast-worker-3' });
  });

  it('a lock acquired there is renewed, acquired again and released here', async () => {
    const name = freshName();
    await theirs.acquire(name, OWNER, 60_000, INSTANCE);
    const { expiry = 0 } = (await stored(name)) ?? {};
    expect(await look(name)).toMatchObject({ owner: OWNER, expiry });
    const renewed = { leaseDuration: 90, expiry: expiry + 30 };
    expect(await say('renew', name, 30)).toMatchObject({ status: 200, ...renewed });
    expect(await stored(name)).toMatchObject(renewed);
    expect(await say('acquire', name, 20)).toMatchObject({ status: 200, leaseDuration: 20 });
    expect(await say('release', name)).toMatchObject({ status: 200, success: true });
    expect(await look(name)).not.toHaveProperty('owner');
    expect(await theirs.acquire(name, 'somebody', 60_000)).not.toBeNull();
    expect((await say('acquire', name, 20)).status).toBe(423);
  });

  it('a lock acquired here is renewed, acquired again and released there', async () => {
    const name = freshName();
    expect(await say('acquire', name, 60)).toMatchObject({ status: 200, leaseDuration: 60 });
    const lock = theirs.lockOf(name, OWNER, INSTANCE);
    expect(await lock.heartbeat(30_000)).toBe(true);
    const renewed = await stored(name);
    expect(renewed).toMatchObject({ owner: OWNER, instanceId: INSTANCE, leaseDuration: 90 });
    expect(await say('renew', name, 10)).toMatchObject({
      status: 200,
      leaseDuration: 100,
      expiry: (renewed?.expiry ?? 0) + 10,
    });
    expect(await theirs.acquire(name, OWNER, 20_000, INSTANCE)).not.toBeNull();
    expect(await say('renew', name, 10)).toMatchObject({ status: 200, leaseDuration: 30 });
    expect(await lock.release()).toBe(true);
    expect((await say('renew', name, 10)).status).toBe(423);
    expect((await say('release', name)).status).toBe(200);
  });

  it('another instance or another owner gets nothing, at either service', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    expect((await say('acquire', name, 60, OTHER)).status).toBe(423);
    expect((await say('renew', name, 60, OTHER)).status).toBe(423);
    expect((await say('release', name, undefined, OTHER)).status).toBe(423);
    expect(await theirs.acquire(name, OWNER, 60_000, OTHER)).toBeNull();
    expect(await theirs.acquire(name, 'somebody', 60_000, INSTANCE)).toBeNull();
    expect(await theirs.lockOf(name, 'somebody', INSTANCE).release()).toBe(false);
    expect(await locksOf(fleet).tryAcquire(name)).toBeNull();
    expect((await look(name)).owner).toBe(OWNER);
  });

  it('the library is kept out and let in, and tokens rise through locks of both services', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const first = await locks.acquire(name);
    expect((await say('acquire', name, 60)).status).toBe(423);
    await first.release();
    expect((await say('acquire', name, 60)).status).toBe(200);
    const [held] = (await locks.inspect(name))?.holders ?? [];
    expect(held?.token).toBeGreaterThan(first.token);
    expect(await locks.tryAcquire(name)).toBeNull();
    await say('release', name);
    const second = await locks.acquire(name);
    expect(second.token).toBeGreaterThan(held?.token ?? Number.NaN);
    await second.release();
  });

  it('an eviction ends a lock of /v1, and the same eviction again ends nobody new', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    await say('acquire', name, 60);
    const token = (await locks.inspect(name))?.holders[0]?.token ?? Number.NaN;
    expect(await locks.evict(name, { upToToken: token })).toBe(1);
    expect((await say('renew', name, 10)).status).toBe(423);
    await say('acquire', name, 60, OTHER);
    expect(await locks.evict(name, { upToToken: token })).toBe(0);
    expect((await say('renew', name, 10, OTHER)).status).toBe(200);
  });

  it('a lock whose expiry has passed is taken over, and a second of clocks that differ is allowed for', async () => {
    const name = freshName();
    const late = (ms: number) => new CentralOnPostgres(fleet.pool, () => Date.now() - ms);
    await late(30_000).acquire(name, 'somebody', 10_000);
    expect(await look(name)).not.toHaveProperty('owner');
    expect((await say('renew', name, 10)).status).toBe(423);
    expect((await say('release', name)).status).toBe(200);
    expect((await say('acquire', name, 10)).status).toBe(200);
    const other = freshName();
    await late(3_000).acquire(other, 'somebody', 1_000);
    expect((await say('acquire', other, 10)).status).toBe(200);
  });

  it('a renewal adds no more than may be held at a time, and then changes nothing', async () => {
    const name = freshName();
    const renew = (id: string) => instances().renew(`default/${name}`, who, 60, 150, id);
    await say('acquire', name, 60);
    expect(await renew('one')).toMatchObject({ kind: 'renewed', lease: { leaseDuration: 120 } });
    expect(await renew('two')).toMatchObject({ kind: 'too-long' });
    expect(await stored(name)).toMatchObject({ leaseDuration: 120 });
  });

  it('F4: an acquire, a renewal or a release that is executed late, when its caller is gone, does nothing', async () => {
    const name = freshName();
    const key = `default/${name}`;
    const late = await Promise.all(
      [0, 1, 2].map(async () => {
        const client = new HeldClient(fleet.pool);
        const store = postgresStore(client, { layout: 'lock-service-central' });
        await store.read(key);
        return { client, store, instances: store.instances };
      }),
    );
    await say('acquire', name, 60);
    for (const { client } of late) client.hold();
    const [acquire, renew, release] = late;
    const gone = Promise.allSettled([
      acquire?.instances?.acquire(key, who, 600, 'late'),
      renew?.instances?.renew(key, who, 600, 6_000, 'late'),
      release?.instances?.release(key, who, 'late'),
    ]);
    await Promise.all(late.map(({ client }) => client.arrived));
    await Promise.all(late.map(({ store }) => store.close()));
    await say('release', name);
    await say('acquire', name, 60);
    const before = await fleet.record(name);
    for (const { client } of late) client.letGo();
    expect((await gone).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await fleet.record(name)).toEqual(before);
  });
});

/** A client that keeps one statement back. */
class HeldClient {
  readonly #pool: pg.Pool;
  #isHolding = false;
  letGo!: () => void;
  #arrive!: () => void;
  readonly #released = new Promise<void>((resolve) => {
    this.letGo = resolve;
  });
  readonly arrived = new Promise<void>((resolve) => {
    this.#arrive = resolve;
  });

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  hold(): void {
    this.#isHolding = true;
  }

  async query(query: pg.QueryConfig): Promise<unknown> {
    if (this.#isHolding) {
      this.#arrive();
      await this.#released;
    }
    return await this.#pool.query(query);
  }
}
