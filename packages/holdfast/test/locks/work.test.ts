import { describe, expect, test } from 'vitest';
import {
  assertLocked,
  createLocks,
  currentLease,
  InvalidArgumentError,
  type Lease,
  LeaseLostError,
  type Locks,
  type TryResult,
} from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from '../engine/stage.js';

type TryWithLock = (work: () => unknown, options?: { wait: number }) => Promise<TryResult<unknown>>;

const LOCKABLES: [string, (locks: Locks) => { tryWithLock: TryWithLock }][] = [
  ['a mutex', (locks) => ({ tryWithLock: (work, options) => locks.tryWithLock('k', work, options) })],
  ['a semaphore', (locks) => locks.semaphore('k', { capacity: 1 })],
  ['a write lock', (locks) => locks.readWrite('k').write],
  ['several keys', (locks) => locks.all(['k', 'l'])],
  ['any key', (locks) => locks.any(['k'])],
];

describe.each(LOCKABLES)('tryWithLock of %s', (_name, lockableOf) => {
  test('runs the work when free, and says who holds it when not', async () => {
    const { open } = stage();
    const [a, b] = [open({ owner: 'ann' }), open({ owner: 'bob' })];
    let ran = 0;
    const inner = lockableOf(b.locks);
    const outcome = await lockableOf(a.locks).tryWithLock(async () => {
      const refused = await inner.tryWithLock(() => {
        ran += 1;
      });
      expect(refused).toMatchObject({
        acquired: false,
        holders: [{ owner: 'ann', permits: expect.any(Number) }],
      });
      return 'done';
    });
    expect(outcome).toEqual({ acquired: true, value: 'done' });
    expect(ran).toBe(0);
    expect((await inner.tryWithLock(() => 'free again')).acquired).toBe(true);
  });

  test('waits if told to', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const held = watchOf(
      lockableOf(a.locks).tryWithLock(() => new Promise((end) => clock.timer(200, () => end(1)))),
    );
    await settle();
    const soon = watchOf(lockableOf(b.locks).tryWithLock(() => 2, { wait: 100 }));
    const later = watchOf(lockableOf(b.locks).tryWithLock(() => 3, { wait: 1_000 }));
    await clock.advance(2_000);
    expect(held.value).toEqual({ acquired: true, value: 1 });
    expect(soon.value).toMatchObject({ acquired: false });
    expect(later.value).toEqual({ acquired: true, value: 3 });
  });
});

test('tryWithLock rejects when the work ended after its lease was lost, as withLock does', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const run = watchOf(
    locks.tryWithLock('k', () => new Promise((end) => clock.timer(5_000, () => end('late'))), { ttl: 1_000 }),
  );
  await settle();
  store.fate = () => 'lost';
  await clock.advance(6_000);
  expect(run.error).toBeInstanceOf(LeaseLostError);
  expect(run.error).toMatchObject({ reason: 'deadline', result: 'late' });
});

describe('reentrant', () => {
  test('goes on under the same lease, which ends with the outer work', async () => {
    const { open } = stage();
    const [a, b] = [open(), open()];
    await a.locks.withLock('k', async (outer) => {
      const inner = await a.locks.withLock('k', (lease) => lease, { reentrant: true });
      expect([inner.token, inner.held, inner.state]).toEqual([outer.token, true, 'held']);
      expect(await b.locks.tryAcquire('k')).toBeNull();
      expect(await a.locks.tryWithLock('k', () => 'inner', { reentrant: true })).toEqual({
        acquired: true,
        value: 'inner',
      });
      expect(outer.held).toBe(true);
    });
    expect(a.store.countOf('claim')).toBe(1);
    expect(await b.locks.tryAcquire('k')).not.toBeNull();
  });

  test('without outer work it takes the lock; other keys, stores and namespaces are not the same', async () => {
    const { open } = stage();
    const { locks, store } = open();
    const elsewhere = open({ namespace: 'elsewhere' }).locks;
    await locks.withLock(
      'k',
      () => elsewhere.withLock('k', () => locks.withLock('l', () => 1, { reentrant: true })),
      {
        reentrant: true,
      },
    );
    expect(store.countOf('claim')).toBe(2);
  });

  test('a reader inside a writer, all of several keys, one of any', async () => {
    const { locks, store } = stage().open();
    const { read, write } = locks.readWrite('rw');
    await write.withLock(() => read.withLock(() => 1, { reentrant: true }));
    await locks.all(['a', 'b', 'c']).withLock((outer) =>
      locks.all(['a', 'c']).withLock(
        async (group) => {
          const [a, , c] = outer.leases;
          expect(group.leases.map(({ token }) => token)).toEqual([a?.token, c?.token]);
          await locks.any(['x', 'b']).withLock((lease) => expect(lease.key).toBe('b'), { reentrant: true });
        },
        { reentrant: true },
      ),
    );
    expect(store.countOf('claim')).toBe(4);
    await expect(read.withLock(() => write.withLock(() => 1, { reentrant: true }))).rejects.toThrow(
      InvalidArgumentError,
    );
  });

  test('finds the outer lease by either spelling of a key', async () => {
    const { locks } = stage().open();
    const [key, other] = ['caf\u00e9', 'cafe\u0301'];
    const inside = { reentrant: true };
    await locks.withLock(key, () => locks.withLock(other, () => 1, inside));
    await locks.withLock(key, ({ token }) => expect(currentLease(other)?.token).toBe(token));
    const { read, write } = locks.readWrite(other);
    await write.withLock(() => read.withLock(() => 1, inside));
    const semaphore = locks.semaphore(other, { capacity: 1 });
    await semaphore.withLock(() => semaphore.withLock(() => 1, inside));
  });

  test('fails when the outer lease is lost', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    await expect(
      locks.withLock(
        'k',
        async () => {
          clock.pause(2_000);
          await locks.withLock('k', () => 1, { reentrant: true });
        },
        { ttl: 1_000 },
      ),
    ).rejects.toMatchObject({ code: 'lease-lost', reason: 'deadline' });
  });

  test('the lock is kept until inner work has ended that the outer work did not await', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const outer = watchOf(
      a.locks.withLock('k', () =>
        Promise.all([
          Promise.reject(new Error('fails at once')),
          a.locks.withLock('k', () => new Promise<void>((end) => clock.timer(500, end)), { reentrant: true }),
        ]),
      ),
    );
    const next = watchOf(b.locks.acquire('k'));
    await clock.advance(490);
    expect([outer.state, next.state]).toEqual(['pending', 'pending']);
    await clock.advance(20);
    expect([outer.error, next.state]).toEqual([new Error('fails at once'), 'done']);
  });

  test('the lock is kept for inner work that begins while other inner work runs, on any of several keys', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const inside = { reentrant: true };
    const pause = (ms: number): Promise<void> => new Promise((end) => void clock.timer(ms, end));
    const outer = watchOf(
      a.locks.all(['a', 'b']).withLock(() => {
        void a.locks.withLock('b', () => pause(300), inside);
        void pause(100).then(() => a.locks.withLock('a', () => pause(1_000), inside));
      }),
    );
    const next = watchOf(b.locks.acquire('a'));
    await clock.advance(1_090);
    expect([outer.state, next.state]).toEqual(['pending', 'pending']);
    await clock.advance(20);
    expect([outer.state, next.state]).toEqual(['done', 'done']);
  });

  test('inner work that begins after the last one has ended gets the lock itself', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const held: boolean[] = [];
    async function work(lease: Lease): Promise<void> {
      await new Promise<void>((end) => void clock.timer(100, end));
      held.push(lease.held, (await b.locks.tryAcquire('k')) === null);
    }
    async function steps(): Promise<void> {
      for (const _ of [1, 2, 3]) await a.locks.tryWithLock('k', work, { reentrant: true });
    }
    let running: Promise<void> | undefined;
    const outer = watchOf(
      a.locks.withLock('k', () => {
        running = steps();
      }),
    );
    await clock.advance(2_000);
    expect(outer.state).toBe('done');
    await running;
    expect(held).toEqual([true, true, true, true, true, true]);
  });

  test('inner work that never ends does not keep the outer work from learning of its loss', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const outer = watchOf(
      locks.withLock(
        'k',
        () => {
          void locks.withLock('k', () => new Promise(() => undefined), { reentrant: true });
        },
        { maxHold: 2_000 },
      ),
    );
    await clock.advance(1_900);
    expect(outer.state).toBe('pending');
    await clock.advance(200);
    expect(outer.error).toMatchObject({ code: 'lease-lost', reason: 'max-hold' });
    expect(locks.leases()).toEqual([]);
  });

  test('a release by inner work does nothing; one by the outer work makes the inner fail', async () => {
    const { open } = stage();
    const [a, b] = [open(), open()];
    await a.locks.withLock('k', async (outer) => {
      await a.locks.withLock('k', (inner) => inner.release(), { reentrant: true });
      await a.locks.all(['k']).withLock((group) => group.release(), { reentrant: true });
      expect([outer.held, await b.locks.tryAcquire('k')]).toEqual([true, null]);
      const inner = a.locks.withLock('k', () => outer.release(), { reentrant: true });
      await expect(inner).rejects.toMatchObject({ code: 'lease-lost', reason: undefined });
    });
  });

  test('is true or false, and for work only', async () => {
    const { locks } = stage().open();
    await expect(locks.withLock('k', () => 1, { reentrant: 'yes' as never })).rejects.toThrow(
      /reentrant is "yes"/,
    );
    await expect(locks.acquire('k', { reentrant: true } as never)).rejects.toThrow(InvalidArgumentError);
  });
});

describe('the lease that code runs under', () => {
  test('is found by key, innermost first, and is gone outside', async () => {
    const { locks } = stage().open();
    expect(currentLease()).toBeUndefined();
    await locks.withLock('outer', async (outer) => {
      await locks.withLock('inner', async (inner) => {
        expect([currentLease(), currentLease('outer'), currentLease('other')]).toEqual([
          inner,
          outer,
          undefined,
        ]);
        assertLocked('outer');
        await inner.release();
        expect(currentLease()).toBe(outer);
      });
      expect(currentLease()).toBe(outer);
      expect(() => assertLocked('other')).toThrow(/has to run under the lock "other"/);
    });
    expect(currentLease()).toBeUndefined();
  });

  test('is told when it is lost', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    await locks
      .withLock(
        'k',
        () => {
          clock.pause(2_000);
          expect(currentLease('k')?.held).toBe(false);
          expect(() => assertLocked('k')).toThrow(LeaseLostError);
        },
        { ttl: 1_000 },
      )
      .catch((error: unknown) => expect(error).toBeInstanceOf(LeaseLostError));
  });
});

describe('leases held here', () => {
  test('are found by key, to renew or release them', async () => {
    const { open } = stage();
    const { locks } = open();
    const other = open().locks;
    expect([locks.held('k'), locks.leases()]).toEqual([undefined, []]);
    const lease = await locks.acquire('k');
    const shared = await locks.semaphore('s', { capacity: 2 }).acquire();
    await locks.semaphore('s', { capacity: 2 }).acquire();
    expect(locks.held('k')).toBe(lease);
    expect(locks.held('s')).toBe(shared);
    expect(locks.leases()).toHaveLength(3);
    expect(other.held('k')).toBeUndefined();
    await locks.held('k')?.release();
    expect(locks.held('k')).toBeUndefined();
    expect(() => locks.held(7 as never)).toThrow(InvalidArgumentError);
  });

  test('without those that are over by the clock', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    await locks.acquire('k', { ttl: 1_000 });
    clock.pause(2_000);
    expect([locks.held('k'), locks.leases()]).toEqual([undefined, []]);
  });
});

test('two workers of one process that share nothing but the store see their own leases only', async () => {
  const store = memoryStore();
  const [a, b] = [createLocks(store), createLocks(store)];
  await a.withLock('k', async () => {
    expect([a.leases().length, b.leases().length]).toEqual([1, 0]);
  });
});
