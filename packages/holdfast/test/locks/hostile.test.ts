/** What a hostile user or a careless listener may do. */
import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import {
  AcquireTimeoutError,
  InvalidArgumentError,
  LeaseLostError,
  type Lockable,
  StoreError,
} from '../../src/index.js';
import { settle, stage, watchOf } from '../engine/stage.js';

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const each of stream) void each;
}

test('of three that try at once, one gets the lock and two get null, at once', async () => {
  const { open } = stage();
  const { locks } = open();
  const tries = [1, 2, 3].map(() => watchOf(locks.tryAcquire('cron')));
  await settle();
  expect(tries.map(({ state }) => state)).toEqual(['done', 'done', 'done']);
  expect(tries.filter(({ value }) => value !== null)).toHaveLength(1);
});

test('a try behind a shared hold, and a try of all and of any, is answered at once too', async () => {
  const { open } = stage();
  const { locks } = open();
  await locks.readWrite('k').write.acquire();
  const tried = [
    locks.readWrite('k').read.tryAcquire(),
    locks.all(['a', 'k']).tryAcquire(),
    locks.all(['a', 'k']).tryAcquire(),
    locks.any(['k']).tryAcquire(),
  ].map((call: Promise<unknown>) => watchOf(call));
  for (let round = 0; round < 5; round++) await settle();
  expect(tried.map(({ value }) => value)).toEqual([null, null, null, null]);
});

test('a short wait behind a claim in flight ends as contention when the claim is granted', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = () => 'kept';
  const first = locks.acquire('k');
  const short = watchOf(locks.acquire('k', { wait: 10 }));
  await clock.advance(30);
  expect(short.state).toBe('pending');
  store.deliver();
  await first;
  await clock.advance(1);
  expect(short.error).toBeInstanceOf(AcquireTimeoutError);
});

test('waiters that time out one after the other all hear of contention, not of an outage', async () => {
  const { clock, open } = stage();
  const other = open();
  await other.locks.acquire('k', { ttl: 60_000 });
  const { locks } = open();
  const waits = [3_000, 4_000, 5_000].map((ttl) => watchOf(locks.acquire('k', { ttl, wait: 2_500 })));
  await clock.advance(3_000);
  expect(waits.map(({ error }) => error instanceof AcquireTimeoutError)).toEqual([true, true, true]);
});

test('aborting the signal inside a listener of "acquired" does not leak the lock', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const controller = new AbortController();
  locks.on('acquired', () => controller.abort());
  const lease = await locks.acquire('k', { signal: controller.signal, ttl: 500 });
  expect(lease.held).toBe(true);
  await lease.release();
  await clock.advance(1_000);
  expect(await locks.inspect('k')).toBeNull();
});

test.each([
  [
    'throws',
    () => {
      throw new Error('careless');
    },
  ],
  ['rejects', () => Promise.reject(new Error('careless'))],
  ['rejects with no Error', () => Promise.reject('careless')],
])('a listener that %s is a warning of the process, and the lock works on', async (_, careless) => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on('warning', onWarning);
  const { locks } = stage().open();
  locks.on('acquired', careless);
  expect(await locks.withLock('k', () => 'done')).toBe('done');
  await new Promise((resolve) => setTimeout(resolve, 10));
  process.off('warning', onWarning);
  expect(warnings.join('\n')).toMatch(/listener of the Holdfast event "acquired" threw: .*careless/);
});

test('a task that throws does not keep the others from being done', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: 3_000 });
  const { TimerQueue } = await import('../../src/timer-queue.js');
  const timers = new TimerQueue(clock);
  const ran: string[] = [];
  timers.call(clock.nowMs + 10, () => {
    throw new Error('a bug');
  });
  timers.call(clock.nowMs + 20, () => ran.push('second'));
  await expect(clock.advance(15)).rejects.toThrow('a bug');
  await clock.advance(20);
  expect(ran).toEqual(['second']);
  expect(lease.held).toBe(true);
});

test('a release of a stretched lease is tried for as long as the store may keep it', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 1_000 });
  await lease.renew('10m');
  store.fate = () => 'lost';
  const releasing = watchOf(lease.release());
  await clock.advance(60_000);
  expect(releasing.error).toBeInstanceOf(StoreError);
  store.fate = () => 'pass';
  await clock.advance(2_000);
  expect(await locks.inspect('k')).toBeNull();
});

test('renew tells why the lease is over', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 1_000 });
  store.fate = () => 'lost';
  const renewing = watchOf(lease.renew());
  await clock.advance(1_000);
  expect(String(renewing.error)).toMatch(/is lost: its time ran out/);
});

test('a stretched lease is not handed over, and the next waiter claims at the store at once', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k');
  const waiting = watchOf(locks.acquire('k', { wait: '1h' }));
  await clock.advance(10);
  expect((await locks.inspect('k'))?.waiters).toHaveLength(0);
  await lease.renew('1h');
  await clock.advance(10);
  expect((await locks.inspect('k'))?.waiters).toHaveLength(1);
  await lease.release();
  await clock.advance(1);
  expect(waiting.state).toBe('done');
});

test('a hundred waiters with one signal are one listener on it, and none is left', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k');
  const controller = new AbortController();
  const waits = Array.from({ length: 100 }, () => watchOf(locks.acquire('k', { signal: controller.signal })));
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  controller.abort(new Error('enough'));
  await settle();
  expect(waits.every(({ error }) => String(error) === 'Error: enough')).toBe(true);
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  await lease.release();
  await clock.advance(10);
});

test('any leaves nothing on the signal of its caller', async () => {
  const { open } = stage();
  const { locks } = open();
  const { signal } = new AbortController();
  for (let round = 0; round < 20; round++) {
    const lease = await locks.any(['a', 'b']).acquire({ signal });
    await lease.release();
  }
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('all rejects with LeaseLostError when an early lease was lost while the later were waited for', async () => {
  const { clock, open } = stage();
  const other = open();
  const blocker = await other.locks.acquire('b', { ttl: 60_000 });
  const { locks } = open();
  const waiting = watchOf(locks.all(['a', 'b']).acquire({ wait: '1h' }));
  await clock.advance(100);
  await other.locks.evict('a');
  await clock.advance(100);
  await blocker.release();
  await clock.advance(100);
  expect(waiting.error).toBeInstanceOf(LeaseLostError);
  expect(await locks.inspect('b')).toBeNull();
});

test('listeners may throw anything and add listeners while they are called', async () => {
  const { open } = stage();
  const { locks } = open();
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  let calls = 0;
  locks.on('acquired', () => {
    calls += 1;
    locks.on('acquired', () => undefined);
    throw Object.create(null);
  });
  await locks.acquire('k');
  expect(calls).toBe(1);
  expect(warned).toHaveBeenCalledOnce();
  warned.mockRestore();
});

test('watch refuses what is no signal', async () => {
  const { open } = stage();
  const { locks } = open();
  const stream = locks.watch({ signal: 'x' as unknown as AbortSignal });
  await expect(drain(stream)).rejects.toBeInstanceOf(InvalidArgumentError);
});

test('nonsense is refused everywhere, whatever its prototype', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const bare = Object.create(null) as never;
  type Loose = Lockable<unknown> & { acquire(options: unknown): Promise<unknown> };
  for (const lock of [locks.all(['a']), locks.any(['a'])] as Loose[]) {
    for (const options of [5, true, [], () => undefined, { nope: 1 }]) {
      await expect(lock.acquire(options as never)).rejects.toBeInstanceOf(InvalidArgumentError);
    }
  }
  for (const metadata of [new Date(), new Map(), { toJSON: () => undefined }] as never[]) {
    await expect(locks.acquire('k', { metadata })).rejects.toBeInstanceOf(InvalidArgumentError);
  }
  await expect(locks.acquire(bare)).rejects.toBeInstanceOf(InvalidArgumentError);
  await expect(locks.acquire('k', { ttl: bare })).rejects.toBeInstanceOf(InvalidArgumentError);
  expect(store.applied).toEqual([]);
});

test('callers of a semaphore claim no more than there are, also when the answers come in another order', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  let claims = 0;
  store.fate = (command) => {
    if (command.kind !== 'claim') return 'pass';
    claims += 1;
    return claims % 16 === 0 ? 'pass' : 'kept';
  };
  const semaphore = locks.semaphore('k', { capacity: 100 });
  const waits = Array.from({ length: 17 }, () => watchOf(semaphore.acquire()));
  for (let round = 0; round < 5; round++) await settle();
  expect(claims).toBeLessThanOrEqual(20);
  store.fate = () => 'pass';
  store.deliver();
  await clock.advance(300);
  expect(waits.every(({ state }) => state === 'done')).toBe(true);
  expect((await locks.inspect('k'))?.holders).toHaveLength(17);
});

test('what a listener asks for while the locks are closed is refused', async () => {
  const { open } = stage();
  const { locks } = open();
  await locks.acquire('k');
  const late: ReturnType<typeof watchOf>[] = [];
  locks.on('lost', () => late.push(watchOf(locks.acquire('other'))));
  await locks.close({ drain: 0 });
  expect(late).toHaveLength(1);
  expect(late[0]?.error).toBeInstanceOf(InvalidArgumentError);
});
