import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, test, vi } from 'vitest';
import {
  AcquireTimeoutError,
  createLocks,
  InvalidArgumentError,
  type KeyChange,
  LeaseLostError,
  StoreError,
} from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from '../engine/stage.js';

test('P4: a failed release changes neither the result nor the error of the work', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = (command) => (command.kind === 'release' ? 'rejected' : 'pass');
  const good = watchOf(locks.withLock('a', () => 42));
  const bad = watchOf(
    locks.withLock('b', () => {
      throw new Error('my own');
    }),
  );
  await clock.advance(2_100);
  expect(good.value).toBe(42);
  expect(String(bad.error)).toContain('my own');
  const lease = await locks.acquire('c');
  const releasing = watchOf(lease.release());
  await clock.advance(2_100);
  expect(releasing.error).toBeInstanceOf(StoreError);
  store.fate = () => 'pass';
  await clock.advance(8_000);
  expect(await locks.inspect('c')).toBeNull();
});

test('P5: one lock object used twice at once: each run has a lease of its own', async () => {
  const locks = createLocks(memoryStore());
  const { write } = locks.readWrite('k');
  let inside = 0;
  const run = () =>
    write.withLock(async () => {
      inside += 1;
      expect(inside).toBe(1);
      await settle();
      inside -= 1;
    });
  await Promise.all([run(), run(), run()]);
});

test('P10: work that outlives its lease rejects with LeaseLostError, which has the result', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const run = locks.withLock(
    'k',
    async (lease) => {
      store.fate = () => 'lost';
      await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve()));
      return 'too late';
    },
    { ttl: 1_000 },
  );
  const watched = watchOf(run);
  await clock.advance(5_000);
  expect(watched.error).toBeInstanceOf(LeaseLostError);
  expect((watched.error as LeaseLostError).result).toBe('too late');
  expect((watched.error as LeaseLostError).cause).toBeInstanceOf(LeaseLostError);
});

test('F9: a release by one who does not hold does nothing; releasing twice is fine', async () => {
  const store = memoryStore();
  const a = createLocks(store);
  const b = createLocks(store);
  const first = await a.acquire('k');
  await first.release();
  const second = await b.acquire('k');
  await first.release();
  expect(second.held).toBe(true);
  expect(await a.tryAcquire('k')).toBeNull();
  expect(() => first.assertHeld()).toThrow(/was released/);
});

test('await using releases at the end of the block', async () => {
  const locks = createLocks(memoryStore());
  {
    await using lease = await locks.acquire('k');
    expect(lease.held).toBe(true);
  }
  expect(await locks.inspect('k')).toBeNull();
});

test('minHold: however early it is released, nobody gets the key sooner', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k', { minHold: 2_000 });
  await lease.release();
  expect((await b.locks.inspect('k'))?.holders[0]?.resting).toBe(true);
  const waiting = watchOf(b.locks.acquire('k', { wait: 10_000 }));
  await clock.advance(1_990);
  expect(waiting.state).toBe('pending');
  await clock.advance(15);
  expect(waiting.state).toBe('done');
});

test('events tell the story, on the locks and on diagnostics_channel, and a listener that throws harms nobody', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  const seen: string[] = [];
  const published: unknown[] = [];
  const onPublished = (message: unknown): void => void published.push(message);
  subscribe('holdfast:acquired', onPublished);
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  b.locks.on('acquired', () => {
    throw new Error('a bad listener');
  });
  for (const name of ['acquired', 'contended', 'renewed', 'jeopardy', 'lost', 'released'] as const) {
    b.locks.on(name, (detail) => seen.push(`${name} ${detail.key} ${detail.owner}`));
  }
  const held = await a.locks.acquire('k');
  const waiting = b.locks.acquire('k', { ttl: 3_000 });
  await clock.advance(10);
  await held.release();
  const lease = await waiting;
  await clock.advance(1_100);
  b.store.fate = () => 'rejected';
  await clock.advance(5_000);
  expect(lease.state).toBe('lost');
  unsubscribe('holdfast:acquired', onPublished);
  expect([...new Set(seen)]).toEqual([
    'contended k b',
    'acquired k b',
    'renewed k b',
    'jeopardy k b',
    'lost k b',
  ]);
  expect(published).toHaveLength(2);
  expect(published[1]).toMatchObject({ key: 'k', owner: 'b', token: lease.token, handedOver: false });
  expect(warned).toHaveBeenCalledOnce();
  warned.mockRestore();
});

test('on returns a function that unsubscribes', async () => {
  const locks = createLocks(memoryStore());
  const tokens: number[] = [];
  const off = locks.on('acquired', ({ token }) => tokens.push(token));
  await (await locks.acquire('k')).release();
  off();
  await (await locks.acquire('k')).release();
  expect(tokens).toHaveLength(1);
});

test('inspect and list show who holds and who waits, and never a hold id or an inbox', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  await a.locks.acquire('order:1', { metadata: { job: 7 } });
  void watchOf(b.locks.acquire('order:1', { wait: '1h' }));
  await a.locks.acquire('order:2');
  await a.locks.acquire('other');
  await clock.advance(10);
  const info = await b.locks.inspect('order:1');
  expect(info).toMatchObject({
    key: 'order:1',
    holders: [{ owner: 'a', metadata: { job: 7 } }],
    waiters: [{ owner: 'b' }],
  });
  expect(JSON.stringify(info)).not.toContain('random-');
  const keys: string[] = [];
  for await (const { key } of b.locks.list({ prefix: 'order:' })) keys.push(key);
  expect(keys).toEqual(['order:1', 'order:2']);
  const limited: string[] = [];
  for await (const { key } of b.locks.list({ limit: 1 })) limited.push(key);
  expect(limited).toEqual(['order:1']);
  expect(await b.locks.inspect('free')).toBeNull();
});

test('watch tells what appears, changes and goes', async () => {
  const { clock, open } = stage();
  const { locks } = open({ owner: 'a' });
  const changes: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    const stream: AsyncIterable<KeyChange> = locks.watch({ every: 100, signal: stop.signal });
    for await (const { kind, info } of stream) changes.push(`${kind} ${info.key}`);
  })();
  await clock.advance(10);
  const lease = await locks.acquire('k');
  await clock.advance(150);
  await lease.release();
  const again = await locks.acquire('k');
  await clock.advance(150);
  await again.release();
  await clock.advance(150);
  stop.abort();
  await clock.advance(10);
  await watching;
  expect(changes).toEqual(['appeared k', 'changed k', 'gone k']);
});

test('evict ends the holder, tells it, lets the next in; on a free key it ends nobody', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const evicted = await a.locks.acquire('k', { ttl: 60_000 });
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(10);
  expect(await b.locks.evict('k')).toBe(1);
  await clock.advance(5);
  expect([evicted.state, waiting.state]).toEqual(['lost', 'done']);
  expect(await b.locks.evict('free')).toBe(0);
});

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

test('F21: releaseAll gives every lease back', async () => {
  const { open } = stage();
  const { locks } = open();
  const leases = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key)));
  await locks.releaseAll();
  expect(leases.map(({ state }) => state)).toEqual(['released', 'released', 'released']);
  for await (const info of locks.list()) throw new Error(`${info.key} is still held`);
});

test('close ends all waiting, gives everything back, sets no more timers; afterwards calls are refused', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k');
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(10);
  await b.locks.close();
  expect(waiting.error).toBeInstanceOf(InvalidArgumentError);
  expect((await a.locks.inspect('k'))?.waiters).toEqual([]);
  await a.locks.close();
  await a.locks.close();
  expect(lease.state).toBe('released');
  await settle();
  expect(clock.timers.size).toBe(0);
  await expect(a.locks.acquire('k')).rejects.toBeInstanceOf(InvalidArgumentError);
  await expect(a.locks.inspect('k')).rejects.toBeInstanceOf(InvalidArgumentError);
});

test('nothing hangs on a store that answers nothing: every call settles', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('held', { ttl: 60_000 });
  store.fate = () => 'lost';
  const never = new Promise<never>(() => undefined);
  store.read = () => never;
  store.probe = () => never;
  const calls: Promise<unknown>[] = [
    locks.tryAcquire('k'),
    locks.acquire('k', { wait: 1_000 }),
    locks.inspect('k'),
    locks.evict('k'),
    locks.probe(),
    lease.renew(),
    lease.release(),
    locks.releaseAll(),
  ];
  const watched = calls.map((call) => watchOf(call));
  await clock.advance(6_000);
  expect(watched.map(({ state }) => state)).not.toContain('pending');
  const closing = watchOf(locks.close());
  await clock.advance(6_000);
  expect(closing.state).toBe('done');
});
