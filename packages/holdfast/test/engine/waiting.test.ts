import { expect, test } from 'vitest';
import { AcquireTimeoutError, StoreError } from '../../src/index.js';
import { settle, stage, watchOf } from './stage.js';

test('F4: the reply to a granted claim is lost; the retry gets the same grant and meets no lock of its own', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  let claims = 0;
  store.fate = (command) => (command.kind === 'claim' && ++claims === 1 ? 'reply-lost' : 'pass');
  const acquiring = locks.acquire('k');
  await clock.advance(300);
  const lease = await acquiring;
  const [first, second] = store.applied;
  expect(claims).toBe(2);
  expect(first?.kind === 'claim' && second?.kind === 'claim' && second.hold).toEqual(
    first?.kind === 'claim' && first.hold,
  );
  const info = await locks.inspect('k');
  expect(info?.holders).toHaveLength(1);
  expect(info?.holders[0]?.token).toBe(lease.token);
});

test('F5: a claim that succeeds after its caller gave up is given back', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = (command) => (command.kind === 'claim' ? 'reply-lost' : 'pass');
  const outcome = watchOf(locks.tryAcquire('k', { ttl: 30_000 }));
  await clock.advance(100);
  expect((await locks.inspect('k'))?.holders).toHaveLength(1);
  await clock.advance(2_000);
  expect(outcome.error).toBeInstanceOf(StoreError);
  expect(await locks.inspect('k')).toBeNull();
});

test('F5, P9: aborting while waiting rejects with the reason, leaves the queue, and leaks nothing', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const held = await a.locks.acquire('k');
  const controller = new AbortController();
  const waiting = watchOf(b.locks.acquire('k', { signal: controller.signal }));
  await clock.advance(50);
  expect((await a.locks.inspect('k'))?.waiters).toHaveLength(1);
  const reason = new Error('shutting down');
  controller.abort(reason);
  await settle();
  expect(waiting.error).toBe(reason);
  expect((await a.locks.inspect('k'))?.waiters).toHaveLength(0);
  await held.release();
  expect(await a.locks.inspect('k')).toBeNull();
});

test('P9: aborting the signal during the work changes nothing: it ends waiting, not leases', async () => {
  const { open } = stage();
  const { locks } = open();
  const controller = new AbortController();
  const result = await locks.withLock(
    'k',
    async (lease) => {
      controller.abort();
      await settle();
      return lease.held;
    },
    { signal: controller.signal },
  );
  expect(result).toBe(true);
  expect(await locks.inspect('k')).toBeNull();
});

test('F7: an outage is a StoreError, contention an AcquireTimeoutError or null', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open({ owner: 'b' });
  await a.locks.acquire('k', { owner: 'worker-7' });
  const late = watchOf(b.locks.acquire('k', { wait: 300 }));
  await clock.advance(301);
  expect(late.error).toBeInstanceOf(AcquireTimeoutError);
  expect(String(late.error)).toContain('worker-7');
  b.store.fate = () => 'rejected';
  const tried = watchOf(b.locks.tryAcquire('k'));
  const waited = watchOf(b.locks.acquire('k', { wait: 3_000 }));
  await clock.advance(2_001);
  expect(tried.error).toBeInstanceOf(StoreError);
  expect((tried.error as StoreError).cause).toBeInstanceOf(Error);
  await clock.advance(1_000);
  expect(waited.error).toBeInstanceOf(StoreError);
});

test('P1: tryAcquire and a wait of 0 really claim, once', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { wait: 0 });
  expect(lease.held).toBe(true);
  expect(store.countOf('claim')).toBe(1);
});

test('F1: a wait that ends while the process stands still is decided by the claim that is on its way', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  await open().locks.acquire('k', { ttl: 60_000 });
  const waiting = watchOf(locks.acquire('k', { wait: 5_000 }));
  await clock.advance(100);
  const before = store.countOf('claim');
  store.fate = () => 'kept';
  for (let step = 0; step < 40 && store.countOf('claim') === before; step++) await clock.advance(50);
  clock.pause(6_000);
  await clock.advance(1);
  store.deliver();
  await settle();
  expect(waiting.error).toBeInstanceOf(AcquireTimeoutError);
  expect(store.countOf('claim')).toBe(before + 1);
});

test.each([
  ['a short wait', 0, { wait: 100 }],
  ['no wait, behind another', 1, { wait: 0 }],
])(
  'F1: after the process stood still, %s is answered by the claim that was on its way',
  async (_, before, options) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    await open().locks.acquire('k', { ttl: 60_000 });
    store.fate = () => 'kept';
    const first = before > 0 ? watchOf(locks.acquire('k', { wait: 60_000 })) : null;
    const waiting = watchOf(locks.acquire('k', options));
    await settle();
    clock.pause(3_000);
    await clock.advance(1);
    store.fate = () => 'pass';
    store.deliver();
    await clock.advance(1_000);
    expect(waiting.error).toBeInstanceOf(AcquireTimeoutError);
    expect(first?.state ?? 'pending').toBe('pending');
  },
);

test('F18, P19: a thousand waiters of one process are one contender, with a slow safety poll', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  await a.locks.acquire('k', { ttl: 60_000 });
  for (let index = 0; index < 1_000; index++) void watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(1_000);
  const before = b.store.applied.length;
  await clock.advance(10_000);
  expect(b.store.applied.length - before).toBeLessThan(20);
  expect((await a.locks.inspect('k'))?.waiters).toHaveLength(1);
});

test('F19: waiters are served in order, within a process and across processes', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  const order: string[] = [];
  const held = await a.locks.acquire('k');
  const waits = ['b1', 'b2'].map((name) => b.locks.withLock('k', () => order.push(name), { ttl: 9_000 }));
  await settle();
  const c = open({ owner: 'c' });
  const last = c.locks.withLock('k', () => order.push('c'));
  await clock.advance(10);
  await held.release();
  await clock.advance(5_000);
  await Promise.all([...waits, last]);
  expect(order).toEqual(['b1', 'b2', 'c']);
});

test('P22: a waiter proceeds as soon as the holder releases, not when its lease would have ended', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const held = await a.locks.acquire('k', { ttl: '1h' });
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(5_000);
  await held.release();
  await clock.advance(1);
  expect(waiting.state).toBe('done');
});

test('F19: processes whose stores know that wake-ups no longer come are served in order all the same', async () => {
  const { clock, open } = stage();
  const holder = open();
  const waiters = Array.from({ length: 4 }, () => open());
  const lease = await holder.locks.acquire('k', { ttl: '1h' });
  const served: number[] = [];
  const all = waiters.map(async ({ locks }, place) => {
    await new Promise<void>((resolve) => clock.timer(place * 137, resolve));
    await locks.withLock('k', async () => served.push(place), { wait: '1h' });
  });
  await clock.advance(1_000);
  for (const { store } of waiters) store.hears(false);
  await clock.advance(3_000);
  await lease.release();
  await clock.advance(5_000);
  await Promise.all(all);
  expect(served).toEqual([0, 1, 2, 3]);
});

test('F32: a waiter asks at once when wake-ups come again: one may have been missed', async () => {
  const { clock, open } = stage();
  const [holder, waiter] = [open(), open()];
  const lease = await holder.locks.acquire('k', { ttl: '1h' });
  const acquiring = watchOf(waiter.locks.acquire('k', { wait: '1h' }));
  await clock.advance(2_000);
  waiter.store.hears(false);
  await clock.advance(1);
  await lease.release();
  waiter.store.hears(true);
  await clock.advance(1);
  expect(acquiring.state).toBe('done');
});

test('F32: a waiter called before its process could listen asks once it can', async () => {
  const { clock, open } = stage();
  const [holder, waiter] = [open(), open()];
  const { listen } = waiter.store;
  waiter.store.listen = async (...args) => {
    await new Promise<void>((resolve) => clock.timer(200, resolve));
    return listen.apply(waiter.store, args);
  };
  const lease = await holder.locks.acquire('k', { ttl: '1h' });
  const acquiring = watchOf(waiter.locks.acquire('k', { wait: '1h' }));
  await clock.advance(100);
  await lease.release();
  await clock.advance(110);
  expect(acquiring.state).toBe('done');
});

test('F32: with every wake-up lost, the safety poll still brings the waiter in', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  b.store.hints = false;
  const held = await a.locks.acquire('k', { ttl: '1h' });
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(100);
  await held.release();
  await clock.advance(710);
  expect(waiting.state).toBe('done');
});

test('a wake-up that arrives while a claim is in flight is remembered', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const held = await a.locks.acquire('k', { ttl: '1h' });
  b.store.fate = () => 'kept';
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(1);
  await held.release();
  await settle();
  b.store.fate = () => 'pass';
  b.store.deliver();
  await clock.advance(1);
  expect(waiting.state).toBe('done');
});

test('a waiter that gives up leaves its place to the next of its process', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  const c = open({ owner: 'c' });
  const held = await a.locks.acquire('k');
  const impatient = watchOf(b.locks.acquire('k', { wait: 500 }));
  const patient = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(10);
  const behind = watchOf(c.locks.acquire('k', { wait: '1h' }));
  await clock.advance(600);
  expect(impatient.error).toBeInstanceOf(AcquireTimeoutError);
  await held.release();
  await clock.advance(1);
  expect([patient.state, behind.state]).toEqual(['done', 'pending']);
});

test('shared waiters claim together: sixteen readers in one batch', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const { read } = locks.readWrite('k');
  await Promise.all(Array.from({ length: 16 }, () => read.acquire()));
  expect(store.countOf('claim')).toBeLessThanOrEqual(17);
  expect(store.batches).toBeLessThanOrEqual(3);
});

test('a writer waits behind readers and readers that come later wait behind it', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const early = await a.locks.readWrite('k').read.acquire();
  const writer = watchOf(b.locks.readWrite('k').write.acquire({ wait: '1h' }));
  await clock.advance(10);
  const late = watchOf(a.locks.readWrite('k').read.acquire({ wait: '1h' }));
  await clock.advance(3_000);
  expect([writer.state, late.state]).toEqual(['pending', 'pending']);
  await early.release();
  await clock.advance(1);
  expect([writer.state, late.state]).toEqual(['done', 'pending']);
  await writer.value?.release();
  await clock.advance(1);
  expect(late.state).toBe('done');
});

test('where the store has neither queue nor push, waiting polls with jitter, cut short by what is left', async () => {
  const { clock, open } = stage();
  const traits = { queue: false, push: false };
  const a = open({}, traits);
  const b = open({}, traits);
  const held = await a.locks.acquire('k', { ttl: 60_000 });
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(10_000);
  const polls = b.store.countOf('claim');
  expect(polls).toBeGreaterThan(20);
  expect(polls).toBeLessThan(100);
  await held.release();
  await clock.advance(500);
  expect(waiting.state).toBe('done');
});

test('a store that can prove a death is asked by the first in the queue as often as it says', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open({}, { livenessPollMs: 200 });
  await a.locks.acquire('k', { ttl: 60_000 });
  void watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(1);
  const atFirst = b.store.countOf('claim');
  await clock.advance(2_000);
  expect(b.store.countOf('claim') - atFirst).toBe(10);
});
