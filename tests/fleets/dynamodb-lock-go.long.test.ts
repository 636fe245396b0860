import { LeaseLostError } from 'holdfast';
import { dynamodbLockGo } from 'holdfast/dynamodb/layouts';
import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { lateWriteCase } from './cases-late-write.js';
import { dynamodbFleet } from './dynamodb-fleet.js';
import { freshName, locksOf } from './fleet.js';
import { DynamodbLockGo, goRfc3339Nano } from './foreign-dynamodb-lock-go.js';

describe.runIf(available('dynamodb'))('a fleet on the layout dynamodb-lock-go', () => {
  const fleet = dynamodbFleet({
    layout: dynamodbLockGo,
    keyOf: (name) => ({ key: { S: name } }),
    foreign: (client, table, clock) => new DynamodbLockGo(client, table, clock),
    clocksApartMs: 4_500,
    afterForeignMs: 5_500,
    afterOursMs: 6_500,
    heartbeats: 4,
  });
  lateWriteCase(() => ({
    fleet,
    server: fleet.server,
    place: { table: fleet.table, layout: dynamodbLockGo },
  }));

  it('keeps its hands off for the five seconds of grace that the other software keeps', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const ended = new DynamodbLockGo(fleet.client, fleet.table, () => Date.now() - 4_000);
    await ended.acquire(name, 'their-worker', 1_000);
    const from = performance.now();
    const lease = await locks.acquire(name, { wait: '10s' });
    expect(performance.now() - from).toBeGreaterThan(1_500);
    await lease.release();
  });

  it('F23: writes times of one width that compare as text, and a numeric ttl; reads a ttl that is text', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    await fleet.foreign().acquire(name, 'their-worker', 30_000);
    expect(typeof (await fleet.itemOf(name))?.ttl?.S).toBe('string');
    expect(await locks.evict(name)).toBe(1);
    const lease = await locks.acquire(name, { ttl: '30s' });
    const held = await fleet.itemOf(name);
    expect(held?.owner?.S).toBe('our-worker');
    for (const time of [held?.leasedUntil?.S, held?.createdAt?.S]) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    }
    const days = (Number(held?.ttl?.N) - Date.now() / 1_000) / 86_400;
    expect(Math.round(days)).toBe(2);
    await lease.release();
  });

  it('F23: what it writes never sorts before its time, with however many zeros the other side drops', () => {
    const written = '2026-11-16T12:00:06Z';
    const end = Date.parse(written);
    for (const ms of [-1_000, -999, -990, -900, -500, -100, -10, -1, 0]) {
      expect(written < goRfc3339Nano(end + ms)).toBe(false);
    }
    expect(written < goRfc3339Nano(end + 1_000)).toBe(true);
    // As the original writes its own, this goes wrong: a whole second sorts behind its fractions.
    expect(goRfc3339Nano(end) < goRfc3339Nano(end + 1)).toBe(false);
  });

  it('F23: reads trimmed zeros, zones, and records of versions without createdAt', async () => {
    const locks = locksOf(fleet);
    const end = Math.floor(Date.now() / 1_000) * 1_000 + 60_000;
    const whole = new Date(end).toISOString().slice(0, 19);
    const west = new Date(end - 5 * 3_600_000).toISOString().slice(0, 19);
    const times: readonly [text: string, ms: number][] = [
      [`${whole}Z`, 0],
      [`${whole}.25Z`, 250],
      [`${whole}.000000001Z`, 1],
      [`${west}.5-05:00`, 500],
    ];
    for (const [leasedUntil, ms] of times) {
      const name = freshName();
      const Item = { key: { S: name }, owner: { S: 'they' }, leasedUntil: { S: leasedUntil } };
      await fleet.client.putItem({ TableName: fleet.table, Item });
      const until = (await locks.inspect(name))?.holders[0]?.expiresAt.getTime() ?? 0;
      expect(until - end).toBe(ms + 5_000);
    }
  });

  it('a process of the other software with our owner takes the lock over, and the lease is lost', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name, { owner: 'import:42' });
    const handed = new DynamodbLockGo(fleet.client, fleet.table).handed(name, 'import:42');
    expect(await handed.heartbeat(30_000)).toBe(true);
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    await lease.release();
    expect(await handed.heartbeat(30_000)).toBe(true);
    expect(await handed.release()).toBe(true);
  });

  it('our owner alone opens no lock of the other software', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const lock = await fleet.foreign().acquire(name, 'import:42', 30_000);
    expect(await locks.tryAcquire(name, { owner: 'import:42' })).toBeNull();
    expect(await lock?.heartbeat(30_000)).toBe(true);
  });

  it('a late heartbeat does not bring back what Holdfast had taken over and released', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const slow = new DynamodbLockGo(fleet.client, fleet.table, () => Date.now() - 20_000);
    const lock = await slow.acquire(name, 'their-worker', 1_000);
    await (await locks.acquire(name, { owner: 'their-worker', wait: '5s' })).release();
    expect(await lock?.heartbeat(30_000)).toBe(false);
  });

  it('refuses namespaces, and items that are no locks', async () => {
    await expect(locksOf(fleet, { namespace: 'billing' }).tryAcquire('job')).rejects.toThrow('no namespaces');
    const name = freshName();
    const Item = { key: { S: name }, amount: { N: '12' } };
    await fleet.client.putItem({ TableName: fleet.table, Item });
    await expect(locksOf(fleet).tryAcquire(name)).rejects.toThrow('is not a lock of dynamodb-lock-go');
    expect(await fleet.itemOf(name)).toEqual(Item);
  });
});
