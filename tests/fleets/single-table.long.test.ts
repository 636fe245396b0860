import { dynamodbStore } from 'holdfast/dynamodb';
import { singleTable } from 'holdfast/dynamodb/layouts';
import type { Command, Store } from 'holdfast/protocol';
import { available, startHttpFaults } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { dynamodbFleet } from './dynamodb-fleet.js';
import { claimOf, clientOf, countCalls, freshName, listed, locksOf, say } from './fleet.js';
import { SingleTable } from './foreign-single-table.js';

const keyOf = (name: string) => ({ PK: { S: `LOCK#${name}` }, SK: { S: 'LOCK' } });

describe.runIf(available('dynamodb'))('a fleet on the layout single-table', () => {
  const fleet = dynamodbFleet({
    layout: singleTable,
    keyOf,
    foreign: (client, table, clock) => new SingleTable(client, table, clock),
    clocksApartMs: 900,
    afterForeignMs: 3_000,
    afterOursMs: 3_000,
    heartbeats: 0,
  });

  it('F23: writes whole seconds in UTC, which compare as text, and a numeric TTL two days ahead', async () => {
    const name = freshName();
    const locks = locksOf(fleet, { owner: 'our-worker' });
    const lease = await locks.acquire(name, { ttl: '30s' });
    const held = await fleet.itemOf(name);
    expect(held).toMatchObject({ Owner: { S: 'our-worker' }, LockID: { S: `holdfast-${lease.token}` } });
    expect(held?.ExpiresAt?.S).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(held?.ExpiresAt?.S ?? '')).toBeGreaterThanOrEqual(lease.expiresAt.getTime());
    const days = (Number(held?.TTL?.N) - Date.now() / 1_000) / 86_400;
    expect(days).toBeGreaterThan(1.9);
    expect(days).toBeLessThan(2.1);
    await lease.release();
    const released = await fleet.itemOf(name);
    expect(released?.ExpiresAt?.S).toBe('1970-01-01T00:00:00Z');
    expect(Number(released?.TTL?.N)).toBeGreaterThan(Date.now() / 1_000 + 86_400);
  });

  it('F23: reads times with fractions, trimmed zeros and zones as what they are', async () => {
    const locks = locksOf(fleet);
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000 + 7_200_000;
    const date = new Date(hour).toISOString().slice(0, 14);
    const shifted = new Date(hour + 7_200_000).toISOString().slice(0, 14);
    const times: readonly [text: string, ms: number][] = [
      [`${date}00:05Z`, 5_000],
      [`${date}00:05.1Z`, 5_100],
      [`${date}00:05.123456789Z`, 5_124],
      [`${shifted}00:05+02:00`, 5_000],
    ];
    for (const [ExpiresAt, ms] of times) {
      const name = freshName();
      const Item = { ...keyOf(name), LockID: { S: 'x' }, Owner: { S: 'they' }, ExpiresAt: { S: ExpiresAt } };
      await fleet.client.putItem({ TableName: fleet.table, Item });
      const until = (await locks.inspect(name))?.holders[0]?.expiresAt.getTime() ?? 0;
      // A second because equal seconds still count there, and a second for clocks that differ.
      expect(until - hour).toBe(ms + 2_000);
    }
  });

  it('F23: the release of the original is refused for a reserved word, so its lock runs out', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const foreign = new SingleTable(fleet.client, fleet.table);
    await foreign.acquire(name, 'their-worker', 1_000);
    const id = (await fleet.itemOf(name))?.LockID?.S ?? '';
    await expect(foreign.releaseUnaliased(name, id, 'their-worker')).rejects.toThrow('reserved keyword');
    expect(await locks.tryAcquire(name)).toBeNull();
    await using lease = await locks.acquire(name, { wait: '10s' });
    expect(lease.held).toBe(true);
  });

  it('leaves what else lies in the table alone', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    const other = { PK: { S: `LOCK#${name}` }, SK: { S: 'NODE#1' }, Content: { S: 'theirs' } };
    await fleet.client.putItem({ TableName: fleet.table, Item: other });
    await (await locks.acquire(name)).release();
    const input = { TableName: fleet.table, Key: { PK: other.PK, SK: other.SK } };
    expect((await fleet.client.getItem(input)).Item).toEqual(other);
    expect(await listed(locks, name)).toEqual([]);
  });

  it('one call for a new key, a busy one, a renewal, a release, and a key that another released', async () => {
    const name = freshName();
    const store = fleet.store();
    const other = fleet.store();
    await store.read('default/warm');
    const calls = countCalls(fleet.client);
    const called = async (on: Store, command: Command) => {
      calls.length = 0;
      return [(await say(on, command)).kind, ...calls];
    };
    const claim = claimOf(name, 10_000);
    const { key, hold, ttlMs } = claim;
    const release = { kind: 'release', key, hold, minHoldMs: 0 } as const;
    expect(await called(store, claim)).toEqual(['granted', 'UpdateItem']);
    expect(await called(other, claimOf(name, 10_000))).toEqual(['busy', 'UpdateItem']);
    const renew = { kind: 'renew', key, hold, ttlMs: ttlMs + 1, block: false } as const;
    expect(await called(store, renew)).toEqual(['renewed', 'UpdateItem']);
    expect(await called(store, release)).toEqual(['released', 'UpdateItem']);
    expect(await called(fleet.store(), claimOf(name, 10_000))).toEqual(['granted', 'UpdateItem']);
  });

  it('F4: a write whose reply is lost is not taken for another’s', async () => {
    const name = freshName();
    const faults = await startHttpFaults(fleet.server);
    const store = dynamodbStore(clientOf(faults.url), { table: fleet.table, layout: singleTable });
    await store.read('default/warm');
    const claim = claimOf(name, 10_000);
    const { key, hold } = claim;
    faults.loseReplies({ times: 1, operation: 'UpdateItem' });
    expect(await say(store, claim)).toMatchObject({ kind: 'granted' });
    faults.loseReplies({ times: 1, operation: 'UpdateItem' });
    const released = await say(store, { kind: 'release', key, hold, minHoldMs: 0 });
    expect(released).toMatchObject({ kind: 'released', held: true });
    expect(faults.lost).toBe(2);
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).not.toBeNull();
    await faults.stop();
  });

  it('says what the clocks of the other software mean, and has no queue', async () => {
    const { findings } = await fleet.store().probe();
    expect(findings.map(({ text }) => text).join(' ')).toContain('clocks of its own machines');
    expect(() =>
      dynamodbStore(fleet.client, { table: fleet.table, layout: singleTable, queue: true }),
    ).toThrow('cannot store a queue');
  });

  it('refuses namespaces, which the other software does not have', async () => {
    const locks = locksOf(fleet, { namespace: 'billing' });
    await expect(locks.tryAcquire('job')).rejects.toThrow('has no namespaces');
  });
});
