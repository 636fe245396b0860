import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { schedule } from '../../src/schedule/index.js';
import { watchOf } from '../engine/stage.js';
import { world } from './instances.js';
import { aliveTimers, HOUR_MS, MINUTE_MS, noted } from './noted.js';

describe('stopping', () => {
  it('lets running work end, and runs nothing afterwards', async () => {
    const { time, open } = world();
    const made = noted(open(), { every: '1m' }, {}, 3_000);
    while (made.ticks.length === 0) await time.advance(100);
    const stopped = watchOf(made.schedule.stop());
    await time.advance(1_000);
    expect(stopped.state).toBe('pending');
    await time.advance(2_500);
    expect(stopped.state).toBe('done');
    expect(made.ended).toHaveLength(1);
    expect(made.leases[0]?.state).toBe('released');
    await time.advance(HOUR_MS);
    expect(made.ticks).toHaveLength(1);
    expect(made.errors).toEqual([]);
  });

  it('takes the lease of work that does not end in time, whose signal aborts, and drops queued ticks', async () => {
    const { time, open } = world();
    const instance = open();
    const made = noted(instance, { every: '1m' }, { overlap: 'queue' }, HOUR_MS);
    await time.advance(3 * MINUTE_MS);
    const stopped = watchOf(made.schedule.stop({ drain: '10s' }));
    await time.advance(9_000);
    expect([stopped.state, made.leases[0]?.held]).toEqual(['pending', true]);
    await time.advance(2_000);
    expect(stopped.state).toBe('done');
    expect(made.leases[0]?.signal.reason).toMatchObject({ code: 'lease-lost', reason: 'closed' });
    expect(made.ticks).toHaveLength(1);
    expect(await instance.locks.inspect('job')).toBeNull();
    expect(made.errors).toEqual([]);
  });

  it('after its last tick it leaves no listener on its signal, which may live as long as the process', async () => {
    const { time, nowMs, open } = world();
    const { signal } = new AbortController();
    const once = new Date(nowMs() + MINUTE_MS).toISOString().slice(0, 19);
    const made = noted(open(), once, { signal }, 3_000);
    await time.advance(MINUTE_MS + 1_000);
    expect([made.ticks.length, made.ended.length, made.schedule.next]).toEqual([1, 0, null]);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await time.advance(3_000);
    expect(made.ended).toHaveLength(1);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(made.errors).toEqual([]);
  });

  it.each(Array.from({ length: 16 }, (_, steps) => steps))(
    'at once leaves no work whose lock was granted in that moment, %i steps before',
    async (steps) => {
      const { time, open } = world();
      const instance = open();
      const { store, locks } = instance;
      const made = noted(instance, { every: '1m' }, {}, HOUR_MS);
      let kept = 0;
      store.fate = ({ kind, key }) => {
        if (kind !== 'claim' || !key.endsWith('/job')) return 'pass';
        kept += 1;
        return 'kept';
      };
      for (let step = 0; step < 1_000 && kept === 0; step++) await time.advance(100);
      expect(kept).toBe(1);
      store.fate = () => 'pass';
      store.deliver();
      for (let step = 0; step < steps; step++) await Promise.resolve();
      const stopped = watchOf(made.schedule.stop({ drain: 0 }).then(() => made.ticks.length));
      await time.advance(1_000);
      expect(stopped).toMatchObject({ state: 'done', value: made.ticks.length });
      expect(made.leases.filter(({ signal }) => !signal.aborted)).toEqual([]);
      expect(await locks.inspect('job')).toBeNull();
      expect(made.errors).toEqual([]);
    },
  );

  it('by its own work waits for the others only, and leaves that work its lease', async () => {
    const { time, open } = world();
    const { locks, clock } = open();
    const seen: unknown[] = [];
    const errors: unknown[] = [];
    const made = schedule(
      locks,
      'job',
      { every: '1m' },
      async (lease) => {
        const before = clock.monotonicMs();
        await made.stop();
        seen.push(clock.monotonicMs() - before, lease.held);
      },
      { onError: (error) => errors.push(error) },
    );
    await time.advance(5 * MINUTE_MS);
    expect(seen).toEqual([0, true]);
    expect(errors).toEqual([]);
  });

  it('by one signal for many costs it one listener, and none after the end of the locks', async () => {
    const { time, open } = world();
    const { locks } = open();
    const { signal } = new AbortController();
    for (let at = 0; at < 20; at++)
      schedule(locks, `job ${at}`, { every: '1m' }, () => undefined, { signal });
    await time.advance(MINUTE_MS);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    const closed = watchOf(locks.close());
    await time.advance(MINUTE_MS);
    expect(closed.state).toBe('done');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('by the signal, leaves running work alone', async () => {
    const { time, open } = world();
    const stop = new AbortController();
    const made = noted(open(), { every: '1m' }, { signal: stop.signal }, 30_000);
    await time.advance(MINUTE_MS);
    while (made.ticks.length === 0) await time.advance(100);
    stop.abort();
    expect(made.schedule.next).toBeNull();
    await time.advance(10 * MINUTE_MS);
    expect(made.ended).toHaveLength(1);
    expect(made.ticks).toHaveLength(1);
    const never = noted(open(), { every: '1m' }, { signal: stop.signal });
    await time.advance(10 * MINUTE_MS);
    expect(never.ticks).toEqual([]);
  });

  it('comes with the end of the locks: running work drains, and nothing keeps the process alive', async () => {
    const { time, open } = world();
    const { locks, ...rest } = open();
    const options = { overlap: 'queue', missed: 'run-once' } as const;
    const made = noted({ locks, ...rest }, { every: '1m' }, options, 70_000);
    await time.advance(3 * MINUTE_MS);
    const closed = watchOf(locks.close({ drain: '2m' }));
    await time.advance(3 * MINUTE_MS);
    expect(closed.state).toBe('done');
    expect(made.schedule.next).toBeNull();
    expect(made.errors).toEqual([]);
    expect(made.ended).toEqual(made.ticks);
    expect(aliveTimers(time.timers)).toBe(0);
    expect(() => noted({ locks, ...rest }, { every: '1m' })).toThrow(/closed/);
  });
});
