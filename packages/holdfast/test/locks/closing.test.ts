/** What closing does to work that still runs, to those who wait, and to a store that others use. */
import { expect, test } from 'vitest';
import { createLocks, InvalidArgumentError, type Lease, LeaseLostError } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from '../engine/stage.js';

const later = (): { readonly promise: Promise<void>; readonly end: () => void } => {
  let end: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { promise, end };
};

test('closing waits for running work, and nobody else gets the lock meanwhile', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const job = later();
  const run = watchOf(a.locks.withLock('k', () => job.promise, { ttl: 1_000 }));
  await settle();
  const closing = watchOf(a.locks.close());
  const next = watchOf(b.locks.acquire('k', { wait: '1m' }));
  await clock.advance(4_000);
  expect([closing.state, next.state]).toEqual(['pending', 'pending']);
  job.end();
  await clock.advance(100);
  expect([run.state, closing.state, next.state]).toEqual(['done', 'done', 'done']);
});

test('work that outlives the drain is told before another gets the lock, and fails', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const order: string[] = [];
  let held: Lease | undefined;
  const job = later();
  const run = watchOf(
    a.locks.withLock('k', async (lease) => {
      held = lease;
      lease.signal.addEventListener('abort', () => order.push('told'));
      await job.promise;
      return 'too late';
    }),
  );
  a.locks.on('lost', ({ reason }) => order.push(reason));
  await settle();
  void b.locks.acquire('k', { wait: '1m' }).then(() => order.push('next holder'));
  await settle();
  const closing = watchOf(a.locks.close());
  await clock.advance(4_990);
  expect(order).toEqual([]);
  await clock.advance(20);
  expect(order).toEqual(['closed', 'told', 'next holder']);
  expect([closing.state, held?.state, held?.held]).toEqual(['done', 'lost', false]);
  expect(held?.signal.reason).toBeInstanceOf(LeaseLostError);
  job.end();
  await settle();
  expect(run.error).toMatchObject({ code: 'lease-lost', result: 'too late' });
});

test('while it drains, new leases are refused and those who wait are turned away', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const job = later();
  const run = watchOf(locks.withLock('k', () => job.promise));
  await settle();
  const waiting = watchOf(locks.acquire('k'));
  await settle();
  const closing = watchOf(locks.close());
  await settle();
  expect(waiting.error).toBeInstanceOf(InvalidArgumentError);
  await expect(locks.acquire('other')).rejects.toThrow(/closed/);
  expect([run.state, closing.state]).toEqual(['pending', 'pending']);
  job.end();
  await clock.advance(1);
  expect([run.state, closing.state]).toEqual(['done', 'done']);
});

test('closing again with a shorter drain ends the first one sooner', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k');
  const slow = watchOf(locks.close({ drain: '1h' }));
  await clock.advance(60_000);
  expect([slow.state, lease.held]).toEqual(['pending', true]);
  await locks.close({ drain: 0 });
  expect([slow.state, lease.state]).toEqual(['done', 'lost']);
});

test('releaseAll waits for what is held now, leaves the locks open, and takes away what is left', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const [quick, slow] = [await locks.acquire('quick'), await locks.acquire('slow')];
  const releasing = watchOf(locks.releaseAll({ drain: '2s' }));
  await clock.advance(500);
  await quick.release();
  const later = await locks.acquire('later');
  await clock.advance(1_490);
  expect([releasing.state, slow.held]).toEqual(['pending', true]);
  await clock.advance(20);
  expect(releasing.state).toBe('done');
  expect([quick.state, slow.state, later.state]).toEqual(['released', 'lost', 'held']);
  expect(slow.signal.aborted).toBe(true);
  expect(await locks.inspect('slow')).toBeNull();
});

test('a lease taken away by closing still has the cool-down of its minHold', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  await a.locks.acquire('k', { minHold: '10s' });
  await a.locks.close({ drain: 0 });
  await clock.advance(9_000);
  expect(await b.locks.tryAcquire('k')).toBeNull();
  await clock.advance(1_100);
  expect(await b.locks.tryAcquire('k')).not.toBeNull();
});

test('a store is closed with the last locks that use it, so leases of others live on', async () => {
  const store = memoryStore();
  expect(() => createLocks(store, { ttl: 'soon' as '1s' })).toThrow(InvalidArgumentError);
  const [a, b] = [createLocks(store), createLocks(store)];
  const lease = await b.acquire('k');
  await a.close();
  await a.close();
  await lease.renew();
  expect(lease.held).toBe(true);
  await lease.release();
  await b.close();
  await expect(createLocks(store).acquire('k')).rejects.toThrow(/store is closed/);
});

test('drain has to be a duration', async () => {
  const locks = createLocks(memoryStore());
  await expect(locks.close({ drain: -1 })).rejects.toBeInstanceOf(InvalidArgumentError);
  await expect(locks.releaseAll({ drain: Number.NaN })).rejects.toThrow(/drain is NaN/);
  await (await locks.acquire('still open')).release();
});
