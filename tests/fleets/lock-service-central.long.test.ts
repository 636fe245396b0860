import { LeaseLostError, UnsupportedError } from 'holdfast';
import { lockServiceCentral } from 'holdfast/dynamodb/layouts';
import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { lateWriteCase } from './cases-late-write.js';
import { dynamodbFleet } from './dynamodb-fleet.js';
import { estimatesAgree, freshName, locksOf } from './fleet.js';
import { LockServiceCentral } from './foreign-lock-service-central.js';

const keyOf = (name: string, namespace = 'default') => ({ lockId: { S: `${namespace}:${name}` } });

describe.runIf(available('dynamodb'))('a fleet on the layout lock-service-central', () => {
  const fleet = dynamodbFleet({
    layout: lockServiceCentral,
    keyOf,
    foreign: (client, table, clock) => new LockServiceCentral(client, table, clock),
    clocksApartMs: 900,
    // A renewal adds to what is left, and the second named still counts.
    afterForeignMs: 9_000,
    afterOursMs: 3_000,
    heartbeats: 3,
  });
  lateWriteCase(() => ({
    fleet,
    server: fleet.server,
    place: { table: fleet.table, layout: lockServiceCentral },
  }));

  it('writes what the service reads: whole seconds rounded up, and a secret instance', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { namespace: 'billing', owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: 1_500 });
    const held = await fleet.itemOf(name, 'billing');
    expect(held).toMatchObject({
      namespace: { S: 'billing' },
      lockName: { S: name },
      owner: { S: 'our-worker' },
      leaseDuration: { N: '2' },
    });
    expect(Number(held?.expiry?.N) * 1_000).toBeGreaterThanOrEqual(lease.expiresAt.getTime() + 1_000);
    expect(held?.instanceId?.S).toMatch(/^holdfast-[0-9a-f]{40}$/);
    const theirs = new LockServiceCentral(fleet.client, fleet.table, Date.now, 'billing');
    expect(await theirs.acquire(name, 'our-worker', 5_000)).toBeNull();
    await lease.release();
    const released = Number((await fleet.itemOf(name, 'billing'))?.expiry?.N);
    // Over by any clock; and DynamoDB's time to live ignores what is older than five years.
    expect(released).toBeLessThan(Date.now() / 1_000 - 3_600);
    expect(released).toBeGreaterThan(Date.now() / 1_000 - 30 * 86_400);
    expect(await theirs.acquire(name, 'their-worker', 5_000)).not.toBeNull();
  });

  it('the second that expiry names is still a second of the lock', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const expiry = Math.floor(Date.now() / 1_000) + 60;
    await new LockServiceCentral(fleet.client, fleet.table, () => (expiry - 10) * 1_000).acquire(
      name,
      'they',
      10_000,
    );
    const holder = (await locks.inspect(name))?.holders[0];
    expect(holder?.acquiredAt.getTime()).toBe((expiry - 10) * 1_000);
    // And one more, for clocks that differ.
    expect(holder?.expiresAt.getTime()).toBe((expiry + 2) * 1_000);
  });

  it('what the service changes in a record of ours counts, though our part is still there', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name);
    const { instanceId, holdfast } = (await fleet.itemOf(name)) ?? {};
    const theirs = new LockServiceCentral(fleet.client, fleet.table).lockOf(
      name,
      'our-worker',
      instanceId?.S ?? '',
    );
    expect(await theirs.heartbeat(60_000)).toBe(true);
    expect((await fleet.itemOf(name))?.holdfast).toEqual(holdfast);
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    await lease.release();
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await theirs.release()).toBe(true);
    await (await locks.acquire(name)).release();
  });

  it('F23: the release of the first version is refused for a reserved word, so its lock runs out', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const foreign = new LockServiceCentral(fleet.client, fleet.table);
    await foreign.acquire(name, 'their-worker', 1_000);
    const instance = (await fleet.itemOf(name))?.instanceId?.S ?? '';
    await expect(foreign.release(name, 'their-worker', instance, 'owner')).rejects.toThrow(
      'reserved keyword',
    );
    await using lease = await locks.acquire(name, { wait: '10s' });
    expect(lease.held).toBe(true);
  });

  it('F10: a record that the time to live took away costs neither order nor exclusion', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name, { ttl: 1_000, renew: false });
    await fleet.forget(name);
    await expect(lease.renew()).rejects.toThrow('lost');
    await estimatesAgree();
    const next = await locks.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it('refuses names that the service could not name', async () => {
    const locks = locksOf(fleet);
    for (const name of ['job:123', 'ab', 'a b c', 'x'.repeat(65), 'größe']) {
      await expect(locks.tryAcquire(name)).rejects.toThrow(UnsupportedError);
    }
    await expect(locksOf(fleet, { namespace: 'a.b.c' }).tryAcquire('job')).rejects.toThrow(
      'cannot store the lock',
    );
  });
});
