/** Holdfast, its service under `/v1`, and LockServiceCentral on one DynamoDB table: owner and instance are one identity at both. */
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { dynamodbStore } from 'holdfast/dynamodb';
import { lockServiceCentral } from 'holdfast/dynamodb/layouts';
import type { Store } from 'holdfast/protocol';
import {
  available,
  type DynamodbServer,
  type HttpFaults,
  startDynamodb,
  startHttpFaults,
} from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { centralCases, INSTANCE, OWNER, WHO } from './cases-central.js';
import { CENTRAL_TIMES, type CentralFleet, type CentralLease } from './central-fleet.js';
import { clientOf, closeLocks, freshName, learnTime, locksOf, openTable } from './fleet.js';
import { holds, type MachineClock } from './foreign.js';
import { LockServiceCentral } from './foreign-lock-service-central.js';

const layout = lockServiceCentral;

class CentralDynamodbFleet implements CentralFleet {
  readonly layout = layout;
  readonly clocksApartMs = CENTRAL_TIMES.clocksApartMs;
  readonly afterForeignMs = CENTRAL_TIMES.afterForeignMs;
  readonly afterOursMs = CENTRAL_TIMES.afterOursMs;
  url!: string;
  client!: DynamoDB;
  table!: string;
  store!: () => Store;
  /** Between the service and the server. */
  faults!: HttpFaults;
  #server!: DynamodbServer;
  #near!: DynamoDB;

  async open(): Promise<void> {
    this.#server = await startDynamodb();
    Object.assign(this, await openTable(this.#server.url, layout));
    this.faults = await startHttpFaults(this.#server);
    this.#near = clientOf(this.faults.url);
    await learnTime(this.faultyStore());
  }

  async close(): Promise<void> {
    await closeLocks();
    await this.faults.stop();
    await this.#server.stop();
  }

  faultyStore(): Store {
    return dynamodbStore(this.#near, { table: this.table, layout });
  }

  foreign(clock?: MachineClock): LockServiceCentral {
    return new LockServiceCentral(this.client, this.table, clock);
  }

  async record(name: string) {
    const { Item } = await this.client.getItem({ ...this.#place(name), ConsistentRead: true });
    return Item ?? null;
  }

  async stored(name: string): Promise<CentralLease | null> {
    const item = await this.record(name);
    return (
      item && {
        owner: item.owner?.S,
        instanceId: item.instanceId?.S,
        leaseDuration: Number(item.leaseDuration?.N),
        expiry: Number(item.expiry?.N),
      }
    );
  }

  async edit(name: string, { expiry, leaseDuration }: Partial<CentralLease>): Promise<void> {
    for (const [field, value] of Object.entries({ expiry, leaseDuration })) {
      if (value === undefined) continue;
      await this.client.updateItem({
        ...this.#place(name),
        UpdateExpression: 'SET #field = :value',
        ExpressionAttributeNames: { '#field': field },
        ExpressionAttributeValues: { ':value': { N: String(value) } },
      });
    }
  }

  async forget(name: string): Promise<void> {
    await this.client.deleteItem(this.#place(name));
  }

  #place(name: string) {
    return { TableName: this.table, Key: { lockId: { S: `default:${name}` } } };
  }
}

describe.runIf(available('dynamodb'))('/v1 on the table of LockServiceCentral', () => {
  const fleet = new CentralDynamodbFleet();
  beforeAll(() => fleet.open());
  afterEach(() => fleet.faults.pass());
  afterAll(() => fleet.close());

  const { say, look } = centralCases(
    () => fleet,
    () => fleet.faultyStore(),
  );

  it('every operation is one conditional write and no read, and answers what is stored', async () => {
    const name = freshName();
    const steps = [
      ['acquire', 60],
      ['renew', 30],
      ['acquire', 20],
      ['renew', 5],
      ['release', undefined],
      ['acquire', 10],
      ['release', undefined],
    ] as const;
    for (const [verb, seconds] of steps) {
      const before = fleet.faults.calls.length;
      const { status, leaseDuration, expiry } = await say(verb, name, seconds);
      expect([verb, status]).toEqual([verb, 200]);
      const calls = fleet.faults.calls.slice(before).map(({ operation }) => operation);
      expect([verb, calls]).toEqual([verb, ['UpdateItem']]);
      if (verb !== 'release') expect(await fleet.stored(name)).toMatchObject({ leaseDuration, expiry });
    }
  });

  it('a lock of the other service, and one that it released, cost one conditional write too', async () => {
    const name = freshName();
    const count = async (verb: string, seconds?: number): Promise<readonly unknown[]> => {
      const before = fleet.faults.calls.length;
      const { status } = await say(verb, name, seconds);
      return [status, fleet.faults.calls.slice(before).map(({ operation }) => operation)];
    };
    const lock = await fleet.foreign().acquire(name, OWNER, 60_000, INSTANCE);
    expect(await count('acquire', 20)).toEqual([200, ['UpdateItem']]);
    expect(await lock?.release()).toBe(true);
    expect(await count('acquire', 20)).toEqual([200, ['UpdateItem']]);
    expect(await lock?.release()).toBe(true);
    await fleet.foreign().acquire(name, OWNER, 60_000, INSTANCE);
    expect(await count('release')).toEqual([200, ['UpdateItem']]);
    await fleet.foreign().acquire(name, 'somebody', 60_000, INSTANCE);
    expect(await count('acquire', 20)).toEqual([423, ['UpdateItem']]);
    expect(await count('renew', 20)).toEqual([423, ['UpdateItem']]);
    expect(await count('release')).toEqual([423, ['UpdateItem']]);
  });

  it('a lock that ended half a second ago still counts: clocks may differ by one', async () => {
    const overdue = fleet.foreign(() => Date.now() - 10_500);
    // Answers that took too long, on a machine that stood still, say nothing about that second: ask about another lock.
    for (let tries = 0; tries < 20; tries++) {
      const other = freshName();
      const sinceMs = performance.now();
      await overdue.acquire(other, 'somebody', 10_000);
      const { status } = await say('acquire', other, 10);
      const { owner } = await look(other);
      if (performance.now() - sinceMs > 400) continue;
      expect([status, owner]).toEqual([423, 'somebody']);
      return;
    }
    throw new Error('No answer came within the second.');
  });

  it('P25: a renewal whose first answer is lost adds once', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    const { expiry = 0 } = (await fleet.stored(name)) ?? {};
    fleet.faults.loseReplies({ operation: 'UpdateItem', times: 1 });
    expect(await say('renew', name, 30)).toMatchObject({
      status: 200,
      leaseDuration: 90,
      expiry: expiry + 30,
    });
    expect(await fleet.stored(name)).toMatchObject({ leaseDuration: 90, expiry: expiry + 30 });
    expect(fleet.faults.lost).toBe(1);
  });

  it('F4: a release whose first answer is lost is a success, though another has the lock by then', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    const held = fleet.faults.holdReply({ operation: 'UpdateItem' });
    const released = say('release', name);
    await held.arrived;
    expect(await fleet.foreign().acquire(name, 'somebody', 60_000)).not.toBeNull();
    held.release();
    expect((await released).status).toBe(200);
    expect((await fleet.stored(name))?.owner).toBe('somebody');
  });

  it('F4: a write of an instance that arrives again, or only after its release, does nothing', async () => {
    const name = freshName();
    const arrives = (body: string): Promise<boolean> => holds(fleet.client.updateItem(JSON.parse(body)));
    const stopped = fleet.faults.holdRequest({ operation: 'UpdateItem' });
    const dying = fleet.faultyStore();
    const lost = dying.instances?.acquire(`default/${name}`, WHO, 60, 'late');
    const late = await stopped.arrived;
    await dying.close();
    await expect(lost).rejects.toThrow('given up');
    const from = fleet.faults.calls.length;
    expect((await say('acquire', name, 60)).status).toBe(200);
    expect((await say('renew', name, 60)).status).toBe(200);
    expect((await say('release', name)).status).toBe(200);
    const twice = fleet.faults.calls.slice(from);
    expect(twice).toHaveLength(3);
    for (const { body } of [late, ...twice]) expect(await arrives(body)).toBe(false);
    expect(await say('acquire', name, 60)).toMatchObject({ status: 200, leaseDuration: 60 });
    for (const { body } of [late, ...twice]) expect(await arrives(body)).toBe(false);
    expect(await fleet.stored(name)).toMatchObject({ leaseDuration: 60 });
  });

  it('a token stays the same through a renewal by the other service', async () => {
    const name = freshName();
    const locks = locksOf(fleet);
    await say('acquire', name, 60);
    const token = (await locks.inspect(name))?.holders[0]?.token;
    expect(token).toBeGreaterThan(0);
    expect(await fleet.foreign().lockOf(name, OWNER, INSTANCE).heartbeat(5_000)).toBe(true);
    expect((await locks.inspect(name))?.holders[0]?.token).toBe(token);
  });
});
