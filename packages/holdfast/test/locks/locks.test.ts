import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { createLocks, InvalidArgumentError, LeaseLostError, StoreError } from '../../src/index.js';
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

test('minHold: a release may shorten it, where nothing was done under the lock, and never lengthen it', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const unused = await locks.acquire('k', { minHold: '1h' });
  await unused.release({ minHold: 0 });
  expect(await locks.inspect('k')).toBeNull();
  const group = await locks.all(['a', 'b']).acquire({ minHold: '1h' });
  await group.release({ minHold: 0 });
  expect(await locks.inspect('b')).toBeNull();
  const lease = await locks.acquire('k', { minHold: '1h' });
  await expect(lease.release({ minHold: '2h' })).rejects.toThrow(InvalidArgumentError);
  await expect(lease.release({ minhold: 0 } as object)).rejects.toThrow('There is no option "minhold" here');
  expect(lease.held).toBe(true);
  await lease.release({ minHold: '1m' });
  await clock.advance(59_000);
  expect(await locks.tryAcquire('k')).toBeNull();
  await clock.advance(1_001);
  expect(await locks.tryAcquire('k')).not.toBeNull();
});

test('F21: releaseAll gives every lease back', async () => {
  const { open } = stage();
  const { locks } = open();
  const leases = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key)));
  await locks.releaseAll({ drain: 0 });
  expect(leases.map(({ state }) => state)).toEqual(['lost', 'lost', 'lost']);
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
  await a.locks.close({ drain: 0 });
  await a.locks.close();
  expect(lease.state).toBe('lost');
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
  await clock.advance(12_000);
  expect(closing.state).toBe('done');
});

test('a printed lease shows what it is, and nothing that could be used to hold the lock', async () => {
  const locks = createLocks(memoryStore(), { owner: 'me' });
  const lease = await locks.acquire('printed', { metadata: { job: 7 } });
  const { token, acquiredAt, expiresAt } = lease;
  expect(inspect(lease)).toBe(
    `Lease ${inspect({ key: 'printed', token, owner: 'me', state: 'held', acquiredAt, expiresAt, metadata: { job: 7 } })}`,
  );
  await lease.release();
  expect(inspect(lease)).toContain("state: 'released'");
  await locks.close();
});
