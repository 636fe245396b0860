/** Work under a lock: trying, re-entering, limits, and what code can ask about the lock it runs under. */
import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import {
  assertLocked,
  createLocks,
  currentLease,
  InvalidArgumentError,
  type Lease,
  LeaseLostError,
  type Lockable,
  type Locks,
} from '../../src/index.js';
import { openLocks } from '../../src/locks.js';
import { memoryStore } from '../../src/stores/memory.js';
import { FakeClock, StagedStore, settle, stage, watchOf } from '../engine/stage.js';

const LOCKABLES: [string, (locks: Locks) => Pick<Lockable<never>, 'tryWithLock'>][] = [
  [
    'a mutex',
    (locks) => ({ tryWithLock: (work, options) => locks.tryWithLock('k', work as never, options) }),
  ],
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

describe('maxHold', () => {
  test('ends a lease however well it renews: told first, then the store; the next one gets the lock', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const lost: unknown[] = [];
    a.locks.on('lost', ({ reason, message }) => lost.push(reason, message));
    const lease = await a.locks.acquire('k', { ttl: 1_000, maxHold: 3_500 });
    const { signal } = lease;
    const next = watchOf(b.locks.acquire('k', { wait: '1m' }));
    await clock.advance(3_490);
    expect([lease.held, next.state, a.store.countOf('renew') > 2]).toEqual([true, 'pending', true]);
    expect(lease.remainingMs).toBeLessThanOrEqual(10);
    await clock.advance(30);
    expect([lease.state, next.state]).toEqual(['lost', 'done']);
    expect(signal.reason).toMatchObject({ code: 'lease-lost', reason: 'max-hold' });
    expect(lost).toEqual(['max-hold', 'it was held for as long as its `maxHold` allows']);
  });

  test('sends no renewal that it does not need', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const lease = await locks.acquire('k', { ttl: 30_000, maxHold: 20_000 });
    await clock.advance(19_990);
    expect([lease.held, store.countOf('renew')]).toEqual([true, 0]);
    await clock.advance(20);
    expect([lease.state, await locks.inspect('k')]).toEqual(['lost', null]);
  });

  test('counts by either clock, also after a pause before any timer ran', async () => {
    const { clock, open } = stage();
    const lease = await open().locks.acquire('k', { maxHold: 5_000 });
    clock.pause(5_001);
    expect(lease.held).toBe(false);
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'max-hold' }));
    const other = await open().locks.acquire('l', { maxHold: 5_000 });
    clock.wallOffsetMs += 5_001;
    expect(other.held).toBe(false);
  });

  test('each lease of a hold that passes within the process has its own', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const options = { ttl: 1_000, maxHold: 2_000, wait: '1m' } as const;
    const leases: Lease[] = [];
    const runs = [1, 2, 3].map(() =>
      locks.acquire('k', options).then(async (lease) => {
        leases.push(lease);
        await new Promise<void>((end) => clock.timer(1_500, end));
        expect(lease.held).toBe(true);
        await lease.release();
      }),
    );
    const all = watchOf(Promise.all(runs));
    await clock.advance(6_000);
    expect([all.error, all.state, leases.length, store.countOf('claim')]).toEqual([undefined, 'done', 3, 1]);
  });

  test('is kept across a handoff', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const lease = await a.locks.acquire('k', { ttl: 1_000, maxHold: 5_000 });
    await clock.advance(3_000);
    const handoff = watchOf(lease.handoff());
    await settle();
    const adopted = await b.locks.adopt(handoff.value ?? '');
    await clock.advance(1_900);
    expect(adopted.held).toBe(true);
    await clock.advance(200);
    expect(adopted.state).toBe('lost');
    expect(adopted.signal.reason).toMatchObject({ reason: 'max-hold' });
  });

  test('work that never settles no longer holds for ever, and leaves its minHold', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const work = a.locks.withLock('k', () => new Promise(() => undefined), {
      maxHold: 2_000,
      minHold: 4_000,
    });
    void work;
    const next = watchOf(b.locks.acquire('k', { wait: '1m' }));
    await clock.advance(3_900);
    expect(next.state).toBe('pending');
    await clock.advance(300);
    expect(next.state).toBe('done');
  });

  test.each([0, -1, 'soon', Number.NaN, null])('refuses %s', async (maxHold) => {
    const { locks } = stage().open();
    await expect(locks.acquire('k', { maxHold: maxHold as never })).rejects.toThrow(InvalidArgumentError);
  });
});

describe('why a lease was lost', () => {
  test('the store says that it has expired', async () => {
    const clock = new FakeClock();
    let aheadMs = 0;
    const store = memoryStore({ now: () => 1_790_000_000_000 + clock.nowMs + aheadMs });
    const locks = openLocks(new StagedStore(store), {}, clock);
    const lease = await locks.acquire('k', { ttl: 3_000 });
    aheadMs = 2_500;
    await clock.advance(1_100);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
  });

  test('the store no longer knows it, though its time is not over', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const lease = await locks.acquire('k', { ttl: 3_000 });
    const [claim] = store.applied;
    if (claim?.kind !== 'claim') throw new Error('no claim');
    await store.inner.apply([{ kind: 'release', key: claim.key, hold: claim.hold, minHoldMs: 0 }])[0];
    await clock.advance(1_100);
    expect(lease.signal.reason).toMatchObject({ reason: 'replaced' });
  });

  test('an operator ended it', async () => {
    const { clock, open } = stage();
    const [a, b] = [open(), open()];
    const lease = await a.locks.acquire('k', { ttl: 3_000 });
    await b.locks.evict('k');
    await clock.advance(100);
    expect(lease.signal.reason).toMatchObject({ reason: 'evicted' });
  });

  test('it was closed', async () => {
    const { locks } = stage().open();
    const [lease, other] = [await locks.acquire('k'), await locks.acquire('l')];
    await locks.releaseAll({ drain: 0 });
    expect([lease.signal.reason, other.signal.reason]).toMatchObject([
      { reason: 'closed' },
      { reason: 'closed' },
    ]);
  });

  test('a lease that its user released was not lost', async () => {
    const { locks } = stage().open();
    const lease = await locks.acquire('k');
    await lease.release();
    expect(() => lease.assertHeld()).toThrow(
      expect.objectContaining({ code: 'lease-lost', reason: undefined }),
    );
  });
});

describe('reentrant', () => {
  test('goes on under the same lease, which ends with the outer work', async () => {
    const { open } = stage();
    const [a, b] = [open(), open()];
    await a.locks.withLock('k', async (outer) => {
      const inner = await a.locks.withLock('k', (lease) => lease, { reentrant: true });
      expect([inner, inner.held]).toEqual([outer, true]);
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
          expect(group.leases).toEqual([outer.leases[0], outer.leases[2]]);
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

  test('work that outlives the outer work has failed', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    let inner: Promise<unknown> = Promise.resolve();
    await locks.withLock('k', () => {
      inner = locks.withLock('k', () => new Promise((end) => clock.timer(10, () => end('late'))), {
        reentrant: true,
      });
    });
    const watched = watchOf(inner);
    await clock.advance(20);
    expect(watched.error).toMatchObject({ code: 'lease-lost', result: 'late' });
    expect(String(watched.error)).toContain('The outer work has to await the inner one');
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

class FakeProcess extends EventEmitter {
  readonly pid = 4242;
  readonly killed: unknown[] = [];

  kill(...what: unknown[]): void {
    this.killed.push(what);
  }
}

describe('closeOn', () => {
  test('closes at the signal, lets work end, and then lets the signal end the process', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const source = new FakeProcess();
    locks.closeOn(source, { drain: '25s' });
    const work = watchOf(
      locks.withLock('k', () => new Promise((end) => clock.timer(20_000, () => end('done')))),
    );
    await settle();
    source.emit('SIGTERM');
    await clock.advance(19_000);
    expect([work.state, source.killed]).toEqual(['pending', []]);
    await expect(locks.acquire('l')).rejects.toThrow(/closed/);
    await clock.advance(2_000);
    expect([work.value, source.killed]).toEqual(['done', [[4242, 'SIGTERM']]]);
    expect([source.listenerCount('SIGTERM'), source.listenerCount('SIGINT')]).toEqual([0, 0]);
  });

  test('a second signal does not wait', async () => {
    const { clock, open } = stage();
    const { locks } = open();
    const source = new FakeProcess();
    locks.closeOn(source);
    const lease = await locks.acquire('k');
    source.emit('SIGINT');
    await settle();
    expect(lease.held).toBe(true);
    source.emit('SIGINT');
    await clock.advance(100);
    expect(lease.state).toBe('lost');
    expect(source.killed).toContainEqual([4242, 'SIGINT']);
  });

  test('leaves the end of the process to others who listen, and leaves no listener behind', async () => {
    const { clock, open } = stage();
    const source = new FakeProcess();
    const own = open().locks;
    source.on('SIGTERM', () => undefined);
    own.closeOn(source);
    source.emit('SIGTERM');
    await clock.advance(100);
    expect(source.killed).toEqual([]);
    const closed = open().locks;
    closed.closeOn(source);
    await closed.close();
    const undone = open().locks;
    undone.closeOn(source)();
    expect([source.listenerCount('SIGTERM'), source.listenerCount('SIGINT')]).toEqual([1, 0]);
    expect(() => undone.closeOn(undefined as never)).toThrow(/closeOn\(process\)/);
    expect(() => undone.closeOn(source, { drain: 'soon' as never })).toThrow(InvalidArgumentError);
  });
});

test('two workers of one process that share nothing but the store see their own leases only', async () => {
  const store = memoryStore();
  const [a, b] = [createLocks(store), createLocks(store)];
  await a.withLock('k', async () => {
    expect([a.leases().length, b.leases().length]).toEqual([1, 0]);
  });
});
