/** Clients of LockServiceCentral and of `/v1` on one table: owner and instance are one identity at both. */
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { createLocks } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import { createService, type Service } from 'holdfast-service';
import {
  available,
  type DynamodbServer,
  type HttpFaults,
  startDynamodb,
  startHttpFaults,
} from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { clientOf, freshName, learnTime, openTable } from './fleet.js';
import { holds } from './foreign.js';
import { LockServiceCentral } from './foreign-lock-service-central.js';

const OWNER = 'anonymous';
const LAYOUT = 'lock-service-central';
const INSTANCE = 'instance-one';
const OTHER = 'instance-two';

interface Body {
  readonly success?: boolean;
  readonly owner?: string;
  readonly leaseDuration?: number;
  readonly expiry?: number;
}

describe.runIf(available('dynamodb'))('/v1 on the table of LockServiceCentral', () => {
  let server: DynamodbServer;
  let client: DynamoDB;
  let near: DynamoDB;
  let table: string;
  let faults: HttpFaults;
  let service: Service;
  let url: string;
  let theirs: LockServiceCentral;
  let locks: ReturnType<typeof createLocks>;

  beforeAll(async () => {
    server = await startDynamodb();
    const opened = await openTable(server.url, LAYOUT);
    ({ client, table } = opened);
    faults = await startHttpFaults(server);
    near = clientOf(faults.url);
    const store = dynamodbStore(near, { table, layout: LAYOUT });
    await learnTime(store);
    service = createService({ store });
    url = await service.listen();
    theirs = new LockServiceCentral(client, table);
    locks = createLocks(opened.store());
  });

  afterEach(() => faults.pass());

  afterAll(async () => {
    await locks.close();
    await service.close();
    await faults.stop();
    await server.stop();
  });

  async function say(
    verb: string,
    name: string,
    leaseDuration?: number,
    instanceId = INSTANCE,
  ): Promise<Body & { readonly status: number }> {
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
    const Key = { lockId: { S: `default:${name}` } };
    const { Item } = await client.getItem({ TableName: table, Key, ConsistentRead: true });
    if (!Item) return null;
    return {
      owner: Item.owner?.S,
      instanceId: Item.instanceId?.S,
      leaseDuration: Number(Item.leaseDuration?.N),
      expiry: Number(Item.expiry?.N),
    };
  }

  it('a lock acquired there is renewed, acquired again and released here', async () => {
    const name = freshName();
    await theirs.acquire(name, OWNER, 60_000, INSTANCE);
    const { expiry = 0 } = (await stored(name)) ?? {};
    expect(await look(name)).toMatchObject({ owner: OWNER, expiry });
    expect(await say('renew', name, 30)).toMatchObject({
      status: 200,
      leaseDuration: 90,
      expiry: expiry + 30,
    });
    expect(await stored(name)).toMatchObject({ leaseDuration: 90, expiry: expiry + 30 });
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
      const before = faults.calls.length;
      const { status, leaseDuration, expiry } = await say(verb, name, seconds);
      expect([verb, status]).toEqual([verb, 200]);
      const calls = faults.calls.slice(before).map(({ operation }) => operation);
      expect([verb, calls]).toEqual([verb, ['UpdateItem']]);
      if (verb !== 'release') expect(await stored(name)).toMatchObject({ leaseDuration, expiry });
    }
  });

  it('a lock of the other service, and one that it released, cost one conditional write too', async () => {
    const name = freshName();
    const count = async (verb: string, seconds?: number): Promise<readonly unknown[]> => {
      const before = faults.calls.length;
      const { status } = await say(verb, name, seconds);
      return [status, faults.calls.slice(before).map(({ operation }) => operation)];
    };
    const lock = await theirs.acquire(name, OWNER, 60_000, INSTANCE);
    expect(await count('acquire', 20)).toEqual([200, ['UpdateItem']]);
    expect(await lock?.release()).toBe(true);
    expect(await count('acquire', 20)).toEqual([200, ['UpdateItem']]);
    expect(await lock?.release()).toBe(true);
    await theirs.acquire(name, OWNER, 60_000, INSTANCE);
    expect(await count('release')).toEqual([200, ['UpdateItem']]);
    await theirs.acquire(name, 'somebody', 60_000, INSTANCE);
    expect(await count('acquire', 20)).toEqual([423, ['UpdateItem']]);
    expect(await count('renew', 20)).toEqual([423, ['UpdateItem']]);
    expect(await count('release')).toEqual([423, ['UpdateItem']]);
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
    expect(await locks.tryAcquire(name)).toBeNull();
    expect((await look(name)).owner).toBe(OWNER);
  });

  it('the library is kept out and let in, and tokens rise through locks of both services', async () => {
    const name = freshName();
    const first = await locks.acquire(name);
    expect((await say('acquire', name, 60)).status).toBe(423);
    await first.release();
    await say('acquire', name, 60);
    const [held] = (await locks.inspect(name))?.holders ?? [];
    expect(held?.token).toBeGreaterThan(first.token);
    await theirs.lockOf(name, OWNER, INSTANCE).heartbeat(5_000);
    expect((await locks.inspect(name))?.holders[0]?.token).toBe(held?.token);
    expect(await locks.tryAcquire(name)).toBeNull();
    await say('release', name);
    const second = await locks.acquire(name);
    expect(second.token).toBeGreaterThan(held?.token ?? Number.NaN);
    await second.release();
  });

  it('an eviction ends a lock of /v1, and the same eviction again ends nobody new', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    const token = (await locks.inspect(name))?.holders[0]?.token ?? Number.NaN;
    expect(await locks.evict(name, { upToToken: token })).toBe(1);
    expect((await say('renew', name, 10)).status).toBe(423);
    await say('acquire', name, 60, OTHER);
    expect(await locks.evict(name, { upToToken: token })).toBe(0);
    expect((await say('renew', name, 10, OTHER)).status).toBe(200);
  });

  it('a lock whose expiry has passed is taken over, and one second of clocks that differ is allowed for', async () => {
    const name = freshName();
    await new LockServiceCentral(client, table, () => Date.now() - 30_000).acquire(name, 'somebody', 10_000);
    expect(await look(name)).not.toHaveProperty('owner');
    expect((await say('renew', name, 10)).status).toBe(423);
    expect((await say('release', name)).status).toBe(200);
    expect((await say('acquire', name, 10)).status).toBe(200);
    const overdue = new LockServiceCentral(client, table, () => Date.now() - 10_500);
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

  it('a renewal adds no more than may be held at a time, and then changes nothing', async () => {
    const name = freshName();
    const { instances } = dynamodbStore(near, { table, layout: LAYOUT });
    const who = { owner: OWNER, instanceId: INSTANCE };
    const renew = (seconds: number, id: string) => instances?.renew(`default/${name}`, who, seconds, 150, id);
    await say('acquire', name, 60);
    expect(await renew(60, 'one')).toMatchObject({ kind: 'renewed', lease: { leaseDuration: 120 } });
    expect(await renew(60, 'two')).toMatchObject({ kind: 'too-long' });
    expect(await stored(name)).toMatchObject({ leaseDuration: 120 });
  });

  it('P25: a renewal whose first answer is lost adds once', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    const { expiry = 0 } = (await stored(name)) ?? {};
    faults.loseReplies({ operation: 'UpdateItem', times: 1 });
    expect(await say('renew', name, 30)).toMatchObject({
      status: 200,
      leaseDuration: 90,
      expiry: expiry + 30,
    });
    expect(await stored(name)).toMatchObject({ leaseDuration: 90, expiry: expiry + 30 });
    expect(faults.lost).toBe(1);
  });

  it('F4: a release whose first answer is lost is a success, though another has the lock by then', async () => {
    const name = freshName();
    await say('acquire', name, 60);
    const held = faults.holdReply({ operation: 'UpdateItem' });
    const released = say('release', name);
    await held.arrived;
    expect(await theirs.acquire(name, 'somebody', 60_000)).not.toBeNull();
    held.release();
    expect((await released).status).toBe(200);
    expect((await stored(name))?.owner).toBe('somebody');
  });

  it('F4: a write of an instance that arrives again, or only after its release, does nothing', async () => {
    const name = freshName();
    const arrives = (body: string): Promise<boolean> => holds(client.updateItem(JSON.parse(body)));
    const stopped = faults.holdRequest({ operation: 'UpdateItem' });
    const dying = dynamodbStore(near, { table, layout: LAYOUT });
    const who = { owner: OWNER, instanceId: INSTANCE };
    const lost = dying.instances?.acquire(`default/${name}`, who, 60, 'late');
    const late = await stopped.arrived;
    await dying.close();
    await expect(lost).rejects.toThrow('given up');
    const from = faults.calls.length;
    expect((await say('acquire', name, 60)).status).toBe(200);
    expect((await say('renew', name, 60)).status).toBe(200);
    expect((await say('release', name)).status).toBe(200);
    const twice = faults.calls.slice(from);
    expect(twice).toHaveLength(3);
    for (const { body } of [late, ...twice]) expect(await arrives(body)).toBe(false);
    expect(await say('acquire', name, 60)).toMatchObject({ status: 200, leaseDuration: 60 });
    for (const { body } of [late, ...twice]) expect(await arrives(body)).toBe(false);
    expect(await stored(name)).toMatchObject({ leaseDuration: 60 });
  });
});
