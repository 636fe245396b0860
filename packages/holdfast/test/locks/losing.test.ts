/** How leases end without a release: their longest life, why one was lost, and closing at a signal. */
import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import { InvalidArgumentError, type Lease } from '../../src/index.js';
import { openLocks } from '../../src/locks.js';
import { memoryStore } from '../../src/stores/memory.js';
import { FakeClock, StagedStore, settle, stage, watchOf } from '../engine/stage.js';

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

  test('withLock settles after the store was told', async () => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const run = watchOf(
      locks.withLock('k', ({ signal }) => new Promise((_, fail) => signal.addEventListener('abort', fail)), {
        maxHold: 1_000,
      }),
    );
    await settle();
    store.fate = ({ kind }) => (kind === 'release' ? 'kept' : 'pass');
    await clock.advance(1_010);
    expect([run.state, store.countOf('release')]).toEqual(['pending', 1]);
    store.deliver();
    await settle();
    expect(run.state).toBe('failed');
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

  test('locks that are made while others drain do not keep the process', async () => {
    const { clock, open } = stage();
    const source = new FakeProcess();
    const first = open().locks;
    first.closeOn(source);
    await first.acquire('k');
    source.emit('SIGTERM');
    await clock.advance(1_000);
    const late = open().locks;
    late.closeOn(source);
    expect(await late.acquire('k', { wait: 0 }).catch((error: unknown) => error)).toBeInstanceOf(Error);
    await clock.advance(6_000);
    expect(source.killed).toEqual([[4242, 'SIGTERM']]);
    open().locks.closeOn(source);
    await clock.advance(6_000);
    expect(source.killed).toHaveLength(1);
  });

  test('leaves the end of the process to others who listen, and leaves no listener behind', async () => {
    const { clock, open } = stage();
    const source = new FakeProcess();
    const own = open().locks;
    source.on('SIGTERM', () => undefined);
    // Gone when it has run, though its work may go on.
    source.once('SIGINT', () => undefined);
    own.closeOn(source);
    open().locks.closeOn(source)();
    const sibling = open().locks;
    sibling.closeOn(source);
    source.emit('SIGINT');
    await clock.advance(100);
    expect(source.killed).toEqual([]);
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
