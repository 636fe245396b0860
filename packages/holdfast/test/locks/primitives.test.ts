import { expect, test } from 'vitest';
import { AcquireTimeoutError, createLocks, LeaseLostError } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from '../engine/stage.js';

test('all takes every key or none, each once, in the order of their names', async () => {
  const store = memoryStore();
  const a = createLocks(store);
  const b = createLocks(store);
  const order: string[] = [];
  a.on('acquired', ({ key }) => order.push(key));
  const group = await a.all(['c', 'a', 'b', 'a']).acquire();
  expect(order).toEqual(['a', 'b', 'c']);
  expect(group.leases).toHaveLength(3);
  expect(group.held).toBe(true);
  expect(await b.all(['0', 'b']).tryAcquire()).toBeNull();
  expect(await b.inspect('0')).toBeNull();
  await expect(b.all(['0', 'b']).acquire({ wait: 50 })).rejects.toBeInstanceOf(AcquireTimeoutError);
  expect(await b.inspect('0')).toBeNull();
  await group.release();
  expect(await b.all(['0', 'b']).withLock((lease) => lease.leases.length)).toBe(2);
});

test('all: two groups in opposite orders never deadlock', async () => {
  const store = memoryStore();
  const [a, b] = [createLocks(store), createLocks(store)];
  const rounds = Array.from({ length: 50 }, (_, index) =>
    (index % 2 ? a : b).all(index % 3 ? ['x', 'y', 'z'] : ['z', 'y', 'x']).withLock(settle, { wait: '20s' }),
  );
  await Promise.all(rounds);
});

test('all: losing one of the leases is losing the group', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const group = await locks.all(['a', 'b']).acquire();
  const { signal } = group;
  await locks.evict('b');
  await clock.advance(5);
  expect(group.held).toBe(false);
  expect(signal.aborted).toBe(true);
  expect(() => group.assertHeld()).toThrow(LeaseLostError);
});

test('any takes the first that is free, waits for whichever comes first, and keeps only one', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const x = await a.locks.acquire('x');
  const y = await a.locks.acquire('y');
  expect(await b.locks.any(['x', 'y']).tryAcquire()).toBeNull();
  expect((await b.locks.any(['x', 'free']).acquire()).key).toBe('free');
  const waiting = watchOf(b.locks.any(['x', 'y']).acquire({ wait: '1h' }));
  await clock.advance(100);
  await y.release();
  await clock.advance(5);
  expect(waiting.value?.key).toBe('y');
  await x.release();
  await clock.advance(5);
  expect(await a.locks.inspect('x')).toBeNull();
  const late = watchOf(a.locks.any(['y']).acquire({ wait: 100 }));
  await clock.advance(200);
  expect(late.error).toBeInstanceOf(AcquireTimeoutError);
});

test('all and any: the minHold of a key that nobody got does not keep it', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const taken = await a.locks.acquire('b');
  expect(await b.locks.all(['a', 'b']).tryAcquire({ minHold: '1h' })).toBeNull();
  expect(await b.locks.inspect('a')).toBeNull();
  const other = await a.locks.acquire('a');
  const waiting = watchOf(b.locks.any(['a', 'b']).acquire({ wait: '1h', minHold: '1h' }));
  await clock.advance(100);
  await Promise.all([other.release(), taken.release()]);
  await clock.advance(100);
  const [loser] = ['a', 'b'].filter((key) => key !== waiting.value?.key);
  expect(waiting.state).toBe('done');
  expect(await b.locks.inspect(loser ?? '')).toBeNull();
});

test('any does not begin to wait when its signal aborted after the last of the keys was found taken', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  await a.locks.acquire('x');
  const controller = new AbortController();
  const reason = new Error('enough');
  b.locks.on('not-acquired', () => controller.abort(reason));
  const waiting = watchOf(b.locks.any(['x']).acquire({ wait: '1h', signal: controller.signal }));
  await clock.advance(100);
  expect(waiting.error).toBe(reason);
});

test('a semaphore lets so many in, and its permits are counted', async () => {
  const { open } = stage();
  const { locks } = open();
  const semaphore = locks.semaphore('k', { capacity: 3 });
  const two = await semaphore.acquire({ permits: 2 });
  const one = await semaphore.acquire();
  expect(await semaphore.tryAcquire()).toBeNull();
  await two.release();
  expect(await semaphore.tryAcquire({ permits: 3 })).toBeNull();
  expect(await semaphore.tryAcquire({ permits: 2 })).not.toBeNull();
  expect(one.held).toBe(true);
});

test('P24: one holder of a semaphore expires and the others stay', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const semaphore = locks.semaphore('k', { capacity: 2 });
  const short = await semaphore.acquire({ ttl: 500, renew: false });
  const long = await semaphore.acquire({ ttl: 60_000 });
  await clock.advance(600);
  const next = await semaphore.tryAcquire();
  expect([short.held, long.held, next?.held]).toEqual([false, true, true]);
});

test('a reader cannot join a mutex of the same key', async () => {
  const locks = createLocks(memoryStore());
  const lease = await locks.acquire('k');
  expect(await locks.readWrite('k').read.tryAcquire()).toBeNull();
  await lease.release();
  const reader = await locks.readWrite('k').read.acquire();
  expect(await locks.tryAcquire('k')).toBeNull();
  await reader.release();
});
