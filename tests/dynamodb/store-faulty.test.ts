import { setTimeout as pause } from 'node:timers/promises';
import { createLocks, StoreError, UnsupportedError } from 'holdfast';
import { dynamodbStore } from 'holdfast/dynamodb';
import { available } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  claimOf,
  clientOf,
  type FaultyWorld,
  faultyWorld,
  releaseOf,
  renewOf,
  say,
  tableOn,
} from './store-scene.js';

describe.runIf(available('dynamodb'))('DynamoDB that answers badly', () => {
  let world: FaultyWorld;
  let table: string;

  beforeAll(async () => {
    world = await faultyWorld();
    table = await tableOn(world.client());
  });

  afterAll(() => world?.stop());
  afterEach(() => world.faults.pass());

  const open = () => dynamodbStore(world.client(), { table });
  const locksThroughProxy = () => createLocks(open());

  it('F4: the SDK asks again after a lost reply, and meets its own lock: the same grant', async () => {
    const store = open();
    await store.read('nobody');
    const claim = claimOf('F4', 'anna');
    const before = world.faults.count('UpdateItem');
    world.faults.loseReplies({ operation: 'UpdateItem', times: 1 });
    const granted = await say(store, claim);
    expect(world.faults.count('UpdateItem') - before).toBe(2);
    expect(granted.kind).toBe('granted');
    const again = await say(open(), claim);
    expect(again).toMatchObject({ kind: 'granted', token: 'token' in granted ? granted.token : 0 });
  });

  it('F4: renewals and releases whose replies were lost are answered as if they had come', async () => {
    const store = open();
    const claim = claimOf('F4 on', 'anna');
    await say(store, claim);
    world.faults.loseReplies({ operation: 'UpdateItem', times: 1 });
    expect((await say(store, renewOf({ ...claim, ttlMs: 30_000 }))).kind).toBe('renewed');
    world.faults.loseReplies({ operation: 'UpdateItem', times: 1 });
    expect(await say(store, releaseOf(claim))).toMatchObject({ kind: 'released', held: true });
    expect((await say(open(), claimOf('F4 on', 'bert'))).kind).toBe('granted');
  });

  it('F4: a claim that arrives late, after its release, takes nothing', async () => {
    const store = dynamodbStore(world.client({ maxAttempts: 1 }), { table });
    await store.read('nobody');
    const claim = claimOf('late', 'anna');
    const held = world.faults.holdRequest({ operation: 'UpdateItem' });
    const late = say(store, claim);
    await held.arrived;
    // Another connection of the same process withdraws it, as the core does for a claim given up.
    expect(await say(open(), releaseOf(claim))).toMatchObject({ kind: 'released', held: false });
    held.release();
    expect((await late).kind).toBe('withdrawn');
    expect(await open().read('late')).toBeNull();
  });

  it('F22: throttling is unknown, not busy and not lost: asked again inside the lease', async () => {
    const locks = createLocks(dynamodbStore(world.client({ maxAttempts: 1 }), { table }), { ttl: '6s' });
    const unsure: unknown[] = [];
    locks.on('jeopardy', (event) => unsure.push(event));
    const lease = await locks.acquire('throttled');
    world.faults.throttle({ times: 3 });
    while (unsure.length === 0 && !lease.signal.aborted) await pause(20);
    expect(lease.held).toBe(true);
    await pause(6_500);
    expect(lease.held).toBe(true);
    world.faults.throttle({ times: 1 });
    // An emulator that takes seconds to answer leaves the release to the background.
    const [released] = await Promise.allSettled([lease.release()]);
    if (released.status === 'rejected') expect(released.reason).toBeInstanceOf(StoreError);
    const next = await locks.acquire('throttled', { wait: '20s' });
    expect(next.token).toBeGreaterThan(lease.token);
    await locks.close({ drain: 0 });
  });

  it('F7, F22: while everything is throttled nobody is told "busy", and the lock is free for others', async () => {
    const store = dynamodbStore(world.client({ maxAttempts: 1 }), { table });
    await store.read('nobody');
    const locks = createLocks(store);
    world.faults.throttle();
    await expect(locks.acquire('outage', { wait: '600ms' })).rejects.toThrow(StoreError);
    await expect(store.apply([claimOf('outage', 'anna')])[0]).rejects.toThrow(/throughput|throttl/i);
    world.faults.pass();
    await locks.close({ drain: 0 });
    expect((await say(open(), claimOf('outage', 'bert'))).kind).toBe('granted');
  });

  it('P20: renewals go on after the first one failed', async () => {
    const locks = createLocks(dynamodbStore(world.client({ maxAttempts: 1 }), { table }), { ttl: '3s' });
    const lease = await locks.acquire('P20');
    const before = world.faults.count('UpdateItem');
    world.faults.fail({ operation: 'UpdateItem', times: 1 });
    await expect.poll(() => world.faults.count('UpdateItem') - before).toBeGreaterThan(4);
    expect(lease.held).toBe(true);
    await locks.close({ drain: 0 });
  });

  it('P21: a renewal under way does not undo the release that overtakes it', async () => {
    const locks = locksThroughProxy();
    const lease = await locks.acquire('P21', { ttl: '20s' });
    const held = world.faults.holdRequest({ operation: 'UpdateItem' });
    const renewal = lease.renew('30s').then(undefined, (error: unknown) => error);
    await held.arrived;
    const released = lease.release();
    await pause(100);
    held.release();
    await Promise.all([renewal, released]);
    const next = await createLocks(open()).tryAcquire('P21', { wait: '2s' });
    expect(next?.token).toBeGreaterThan(lease.token);
    await next?.release();
  });

  it('P22: a waiter follows an early release within its poll, not at the end of the lease', async () => {
    const [mine, others] = [locksThroughProxy(), locksThroughProxy()];
    const lease = await mine.acquire('P22', { ttl: '60s' });
    const waiting = others.acquire('P22', { wait: '20s' });
    await pause(700);
    const since = performance.now();
    await lease.release();
    const next = await waiting;
    expect(performance.now() - since).toBeLessThan(8_000);
    expect(next.token).toBeGreaterThan(lease.token);
    await Promise.all([mine.close({ drain: 0 }), others.close({ drain: 0 })]);
  });

  it('closing gives up what is under way, so that a server that hangs keeps nobody alive', async () => {
    const store = open();
    await store.read('nobody');
    const held = world.faults.holdReply({ operation: 'UpdateItem' });
    const [claimed] = store.apply([claimOf('hung', 'anna')]);
    const outcome = expect(claimed).rejects.toThrow(/given up: the store was closed/);
    await held.arrived;
    await store.close();
    await outcome;
  });

  it('probe does without the rights to look at the table, and says which are missing', async () => {
    for (const operation of ['DescribeTable', 'DescribeTimeToLive']) {
      world.faults.refuse({ status: 400, type: 'AccessDeniedException', message: 'Not you.' }, { operation });
    }
    const { findings } = await open().probe();
    const words = findings.map(({ text }) => text).join('\n');
    expect(words).toMatch(/dynamodb:DescribeTable/);
    expect(words).toMatch(/dynamodb:DescribeTimeToLive/);
  });

  it('a refusal that will not pass is told at once, with what to do', async () => {
    const store = open();
    world.faults.refuse({ status: 400, type: 'AccessDeniedException', message: 'User is not authorized.' });
    const [refused] = store.apply([claimOf('denied', 'anna')]);
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(/dynamodb:UpdateItem/);
    const nowhere = dynamodbStore(clientOf(world.server.url), { table: 'nowhere' });
    await expect(nowhere.read('any')).rejects.toThrow(/no table "nowhere".*createTable/s);
    await expect(nowhere.apply([claimOf('any', 'anna')])[0]).rejects.toThrow(UnsupportedError);
  });
});
