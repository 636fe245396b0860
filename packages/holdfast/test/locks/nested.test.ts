/** Calls that could only wait for themselves, and what listeners learn of calls that ended without a lease. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  AcquireTimeoutError,
  createLocks,
  InvalidArgumentError,
  LeaseLostError,
  type Locks,
} from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from '../engine/stage.js';

test('a nested call for the same key is refused at once, and says why', async () => {
  const { open } = stage();
  const { locks } = open();
  const nested = watchOf(locks.withLock('k', () => locks.withLock('k', () => 'never')));
  await settle();
  expect(nested.error).toBeInstanceOf(InvalidArgumentError);
  expect(String(nested.error)).toMatch(
    /"k" is held by the same work that asks for it again.*wait for itself.*reentrant: true/,
  );
});

const selfWaits: [string, (locks: Locks) => Promise<unknown>][] = [
  ['acquire in withLock', (locks) => locks.withLock('k', () => locks.acquire('k'))],
  ['all in withLock', (locks) => locks.withLock('b', () => locks.all(['a', 'b']).acquire())],
  ['withLock in all', (locks) => locks.all(['a', 'b']).withLock(() => locks.withLock('b', () => 1))],
  [
    'write in read',
    (locks) => locks.readWrite('k').read.withLock(() => locks.readWrite('k').write.acquire()),
  ],
  [
    'more permits than are left',
    (locks) => {
      const semaphore = locks.semaphore('k', { capacity: 3 });
      return semaphore.withLock(() => semaphore.withLock(() => semaphore.acquire({ permits: 2 })));
    },
  ],
];

test.each(selfWaits)('refused at once: %s', async (_name, run) => {
  const { open } = stage();
  const watched = watchOf(run(open().locks));
  await settle();
  expect(watched.error).toBeInstanceOf(InvalidArgumentError);
});

test('not refused: other keys, permits that are left, readers, tries, and work that has ended', async () => {
  const locks = createLocks(memoryStore());
  const semaphore = locks.semaphore('s', { capacity: 3 });
  const { read } = locks.readWrite('rw');
  await locks.withLock('k', () => locks.withLock('other', () => 1));
  await semaphore.withLock(() => semaphore.withLock(() => 1, { permits: 2 }));
  await read.withLock(() => read.withLock(() => 1));
  await locks.withLock('k', async () => expect(await locks.tryAcquire('k')).toBeNull());
  await locks.any(['k', 'free']).withLock(() => locks.any(['k', 'free']).withLock(() => 1));
  // Started under the lock, asked for after it: nothing waits for itself.
  let after: Promise<unknown> = Promise.resolve();
  await locks.withLock('k', () => {
    after = sleep(20).then(() => locks.withLock('k', () => 'granted'));
  });
  expect(await after).toBe('granted');
  await locks.withLock('k', async (lease) => {
    await lease.release();
    await locks.withLock('k', () => 1);
  });
});

test('callers side by side are no nested calls: they wait for each other', async () => {
  const locks = createLocks(memoryStore());
  const order: number[] = [];
  await Promise.all([1, 2, 3].map((n) => locks.withLock('k', () => order.push(n))));
  expect(order).toEqual([1, 2, 3]);
});

test('a timeout says when this process holds the key', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  await a.locks.acquire('k');
  const own = watchOf(a.locks.acquire('k', { wait: 100 }));
  const other = watchOf(b.locks.acquire('k', { wait: 100 }));
  await clock.advance(200);
  expect(own.error).toBeInstanceOf(AcquireTimeoutError);
  expect(String(own.error)).toContain('this process holds it with another lease');
  expect(String(other.error)).not.toContain('this process');
});

test('every call ends in one event: acquired, or not-acquired with the reason', async () => {
  const { clock, open } = stage();
  const [a, b] = [open({ owner: 'ann' }), open({ owner: 'bob' })];
  const seen: unknown[] = [];
  b.locks.on('acquired', ({ key }) => seen.push([key, 'acquired']));
  b.locks.on('not-acquired', ({ key, owner, reason, holders, waitedMs, cause }) =>
    seen.push([key, owner, reason, holders.map((holder) => holder.owner), waitedMs, cause]),
  );
  await a.locks.acquire('k');
  await b.locks.acquire('free');
  expect(await b.locks.tryAcquire('k')).toBeNull();
  const timedOut = watchOf(b.locks.acquire('k', { wait: 300 }));
  await clock.advance(400);
  const stop = new AbortController();
  const aborted = watchOf(b.locks.acquire('k', { signal: stop.signal }));
  await clock.advance(50);
  const reason = new Error('enough');
  stop.abort(reason);
  await settle();
  b.store.fate = () => 'lost';
  const failed = watchOf(b.locks.tryAcquire('other'));
  await clock.advance(3_000);
  expect(seen).toEqual([
    ['free', 'acquired'],
    ['k', 'bob', 'refused', ['ann'], 0, undefined],
    ['k', 'bob', 'timed-out', ['ann'], 300, undefined],
    ['k', 'bob', 'aborted', [], 50, reason],
    ['other', 'bob', 'failed', [], expect.any(Number), failed.error],
  ]);
  expect([timedOut.state, aborted.error]).toEqual(['failed', reason]);
});

test('reentrant: options of the inner call are checked, and one that was aborted does not run', async () => {
  const locks = createLocks(memoryStore());
  const run = (more: object): Promise<string> =>
    locks.withLock('k', () => locks.withLock('k', () => 'ran', { reentrant: true, ...more }));
  expect(await run({ ttl: '1m', signal: new AbortController().signal })).toBe('ran');
  await expect(run({ ttl: 'soon' })).rejects.toBeInstanceOf(InvalidArgumentError);
  await expect(run({ tll: '1m' })).rejects.toThrow(/tll/);
  await expect(run({ signal: AbortSignal.abort('over') })).rejects.toBe('over');
  const semaphore = locks.semaphore('s', { capacity: 3 });
  const inner = { reentrant: true, permits: 1, wait: 0 };
  expect(await semaphore.withLock(() => semaphore.withLock(() => 'ran', inner))).toBe('ran');
  const group = locks.all(['a', 'b']);
  const aborted = { reentrant: true, signal: AbortSignal.abort('over') };
  await expect(group.withLock(() => group.withLock(() => 'ran', aborted))).rejects.toBe('over');
  await locks.close();
});

test('reentrant: what lost work left running is refused until that work has ended, and then gets a lock of its own', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const sleeping = (ms: number): Promise<void> => new Promise((resolve) => clock.timer(ms, resolve));
  const inside = async (ms: number): Promise<string> => {
    await sleeping(ms);
    return locks.withLock('k', () => 'granted', { reentrant: true });
  };
  let left: ReturnType<typeof watchOf<string>>[] = [];
  const work = watchOf(
    locks.withLock(
      'k',
      async () => {
        left = [watchOf(inside(2_000)), watchOf(inside(9_000))];
        await sleeping(5_000);
      },
      { maxHold: 1_000 },
    ),
  );
  await clock.advance(10_000);
  expect(work.error).toBeInstanceOf(LeaseLostError);
  expect(left[0]?.error).toBeInstanceOf(LeaseLostError);
  expect(left[1]).toMatchObject({ state: 'done', value: 'granted' });
});
