import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidArgumentError, StoreError } from '../../src/protocol/errors.js';
import { acquireTick } from '../../src/schedule/index.js';
import { settle } from '../engine/stage.js';
import { EPOCH_MS, world } from './instances.js';

const BOUND_MS = 30_000;
const TICK = new Date(EPOCH_MS + 100_000);

describe('a tick', () => {
  it('is for one of those that ask, and stays taken when that one is closed', async () => {
    const { time, open } = world();
    await time.advance(99_000);
    const [a, b] = [open(), open()];
    const both = [a, b].map(({ locks }) => acquireTick(locks, 'job', TICK));
    // The second may find the first about to take it, and asks again.
    await time.advance(1_000);
    expect((await Promise.all(both)).sort()).toEqual([false, true]);
    await a.locks.close();
    await b.locks.close();
    expect(await acquireTick(open().locks, 'job', TICK)).toBe(false);
  });

  it('of another time, another key or another namespace is another tick', async () => {
    const { time, open } = world();
    await time.advance(99_000);
    const { locks } = open();
    expect(await acquireTick(locks, 'job', TICK)).toBe(true);
    expect(await acquireTick(locks, 'job', new Date(TICK.getTime() - 1))).toBe(true);
    expect(await acquireTick(locks, 'other', TICK)).toBe(true);
    expect(await acquireTick(open(0, { namespace: 'n' }).locks, 'job', TICK)).toBe(true);
    expect(await acquireTick(locks, 'job', TICK)).toBe(false);
  });

  it('is for nobody who is later than allowed, though it was never taken', async () => {
    const { time, open } = world();
    await time.advance(99_000 + 30_001);
    const { locks, store } = open();
    expect(await acquireTick(locks, 'job', TICK)).toBe(false);
    expect(store.applied).toEqual([]);
    expect(await acquireTick(locks, 'job', TICK, { late: '1m' })).toBe(true);
  });

  it('is for nobody who became too late while the store was asked', async () => {
    const { time, open } = world();
    await time.advance(99_000);
    const { locks, store } = open();
    store.fate = () => 'kept';
    const asked = acquireTick(locks, 'job', TICK);
    await settle();
    time.pause(30_001);
    store.fate = () => 'pass';
    store.deliver();
    await time.advance(1);
    expect(await asked).toBe(false);
  });

  it('that its process has taken, and then died, is for nobody else', async () => {
    const { time, open } = world();
    await time.advance(99_000);
    const { locks, clock, store } = open();
    expect(await acquireTick(locks, 'job', TICK)).toBe(true);
    clock.isDead = true;
    store.fate = () => 'lost';
    for (let second = 0; second < 60; second++) {
      expect(await acquireTick(open(-second * 1_000).locks, 'job', TICK)).toBe(false);
      await time.advance(1_000);
    }
  });

  it('leaves nothing behind when its cool-down is over', async () => {
    const { time, memory, open } = world();
    await time.advance(99_000);
    await acquireTick(open().locks, 'job', TICK);
    const left = async () => {
      const keys: string[] = [];
      for await (const { key } of memory.list({ prefix: '' })) keys.push(key);
      return keys;
    };
    expect(await left()).toEqual([`default/job@${TICK.toISOString()}`]);
    await time.advance(61_000);
    expect(await left()).toEqual([]);
  });

  it('never runs twice, however late and in whichever order its instances ask', async () => {
    const instance = fc.record({
      offMs: fc.integer({ min: 0, max: BOUND_MS }),
      lateMs: fc.integer({ min: 0, max: 61_000 }),
      answeredAfterMs: fc.integer({ min: 0, max: 2_000 }),
    });
    const taken: number[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(instance, { minLength: 2, maxLength: 6 }), async (drawn) => {
        const { time, open } = world();
        const got: boolean[] = [];
        // By the true time, an instance whose clock is ahead comes earlier.
        const asking = drawn.map(({ offMs, lateMs, answeredAfterMs }) => ({
          atMs: TICK.getTime() - EPOCH_MS - offMs + lateMs,
          offMs,
          answeredAfterMs,
        }));
        const asked = asking.map(({ atMs, offMs, answeredAfterMs }) => {
          const { locks, store } = open(offMs);
          return new Promise<void>((resolve) => {
            time.timer(atMs - time.nowMs, () => {
              store.fate = () => 'kept';
              time.timer(answeredAfterMs, () => {
                store.fate = () => 'pass';
                store.deliver();
              });
              void acquireTick(locks, 'job', TICK).then(
                (isTaken) => resolve(void got.push(isTaken)),
                (error: unknown) => resolve(expect(error).toBeInstanceOf(StoreError)),
              );
            });
          });
        });
        await time.advance(300_000);
        await Promise.all(asked);
        const count = got.filter(Boolean).length;
        taken.push(count);
        expect(count).toBeLessThanOrEqual(1);
      }),
      { numRuns: 300 },
    );
    expect(taken.filter((count) => count === 1).length).toBeGreaterThan(200);
  });

  it('is refused when it is no time, far in the future, or its key is too long', async () => {
    const { locks } = world().open();
    const future = acquireTick(locks, 'job', new Date(EPOCH_MS + 3_600_000));
    await expect(future).rejects.toThrow(/is in the future/);
    for (const time of [new Date(Number.NaN), '2026-01-01' as never, undefined as never]) {
      await expect(acquireTick(locks, 'job', time)).rejects.toThrow(InvalidArgumentError);
    }
    await expect(acquireTick(locks, 'k'.repeat(500), TICK)).rejects.toThrow(InvalidArgumentError);
    await expect(acquireTick(locks, 'job', TICK, { late: '8000h' })).rejects.toThrow(/late is "8000h"/);
    await expect(acquireTick(locks, 'job', TICK, { ttl: 1 } as object)).rejects.toThrow(InvalidArgumentError);
    await expect(acquireTick({} as typeof locks, 'job', TICK)).rejects.toThrow(/createLocks/);
  });
});
