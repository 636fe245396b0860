/** Five instances of one schedule in simulated time: every tick once, however their clocks differ up to the bound. */
import { describe, expect, it } from 'vitest';
import { type ScheduleOptions, schedule } from '../../src/schedule/index.js';
import { seededRandom } from '../../src/testkit/random.js';
import type { Fate } from '../engine/stage.js';
import { EPOCH_MS, type Instance, world } from './instances.js';

const EVERY_MS = 100;
const TICKS = 1_000;
const BOUND_MS = 30_000;

interface Run {
  readonly who: string;
  readonly tickMs: number;
  readonly atMs: number;
}

interface Fleet {
  readonly offsetsMs: readonly number[];
  readonly options?: ScheduleOptions;
  readonly ticks?: number;
  readonly everyMs?: number;
  readonly fate?: (random: () => number) => Fate;
  /** Called every second of true time. */
  readonly onSecond?: (instances: readonly Instance[], second: number) => void;
  readonly seed?: number;
}

/**
 * Runs of all instances, and the ticks that count: those from which on all instances are at work. Until then a slow clock
 * runs ticks that the fast one had passed when it started, and runs of both overlap.
 */
async function runFleet(fleet: Fleet): Promise<{ runs: readonly Run[]; tickTimes: readonly number[] }> {
  const { offsetsMs, options = {}, ticks = TICKS, everyMs = EVERY_MS, onSecond, fate, seed = 1 } = fleet;
  const random = seededRandom(seed);
  const { time, nowMs, open } = world(random.next);
  const runs: Run[] = [];
  const errors: unknown[] = [];
  const instances = offsetsMs.map((offMs) => open(offMs));
  const schedules = instances.map(({ locks, clock, store, name }) => {
    if (fate) store.fate = () => fate(random.next);
    return schedule(
      locks,
      'job',
      { every: everyMs },
      async (lease, tick) => {
        lease.assertHeld();
        runs.push({ who: name, tickMs: tick.getTime(), atMs: nowMs() });
        await clock.sleep(random.between(1, 40));
      },
      { onError: (error) => errors.push(error), ...options },
    );
  });
  const fastestMs = Math.max(...offsetsMs);
  const firstMs = nowMs() + 2 * fastestMs - Math.min(...offsetsMs);
  const seconds = Math.ceil((ticks * everyMs + firstMs - nowMs() - fastestMs) / 1_000);
  for (let second = 0; second < seconds; second++) {
    onSecond?.(instances, second);
    await time.advance(1_000);
  }
  const lastMs = nowMs() + fastestMs;
  // Retries and slow clocks may come later.
  await time.advance(1_000);
  for (const [at, { clock }] of instances.entries()) if (!clock.isDead) void schedules[at]?.stop();
  await time.advance(2 * BOUND_MS);
  expect(errors).toEqual([]);
  const tickTimes: number[] = [];
  for (let at = (Math.floor(firstMs / everyMs) + 1) * everyMs; at <= lastMs; at += everyMs)
    tickTimes.push(at);
  return { runs, tickTimes };
}

function counts(runs: readonly Run[]): Map<number, number> {
  const byTick = new Map<number, number>();
  for (const { tickMs } of runs) byTick.set(tickMs, (byTick.get(tickMs) ?? 0) + 1);
  return byTick;
}

const twice = (runs: readonly Run[]): readonly number[] =>
  [...counts(runs)].filter(([, count]) => count > 1).map(([tickMs]) => tickMs - EPOCH_MS);

describe('five instances, 1,000 ticks at 100 ms', () => {
  it.each([
    ['the same clock', [0, 0, 0, 0, 0]],
    ['clocks a little apart', [0, 3, -40, 700, -1_300]],
    ['clocks as far apart as allowed', [0, BOUND_MS, 12_345, 29_990, 7]],
    ['clocks behind the true time', [-BOUND_MS, 0, -15_000, -50, -29_000]],
  ])('with %s: every tick exactly once', async (_, offsetsMs) => {
    const { runs, tickTimes } = await runFleet({ offsetsMs });
    expect(twice(runs)).toEqual([]);
    const ran = counts(runs);
    expect(tickTimes.filter((tickMs) => !ran.has(tickMs))).toEqual([]);
    expect(tickTimes.length).toBeGreaterThanOrEqual(TICKS - 1);
  });

  it('with jitter, every tick exactly once, and every instance has its share', async () => {
    const offsetsMs = [0, 0, 0, 0, 0];
    const { runs, tickTimes } = await runFleet({ offsetsMs, options: { jitter: '50ms', overlap: 'queue' } });
    expect(twice(runs)).toEqual([]);
    const ran = counts(runs);
    expect(tickTimes.slice(0, -1).filter((tickMs) => !ran.has(tickMs))).toEqual([]);
    for (const name of ['i0', 'i1', 'i2', 'i3', 'i4']) {
      expect(runs.filter(({ who }) => who === name).length).toBeGreaterThan(TICKS / 20);
    }
  });

  it.each([1, 2, 3])(
    'over a network that loses commands and replies, seed %i: every tick exactly once',
    async (seed) => {
      const lossy = (random: () => number): Fate => {
        const drawn = random();
        if (drawn < 0.02) return 'lost';
        return drawn < 0.04 ? 'reply-lost' : drawn < 0.06 ? 'rejected' : 'pass';
      };
      // Queued: a run that is held up by the network would otherwise overlap the next tick, which is then skipped.
      const { runs, tickTimes } = await runFleet({
        offsetsMs: [0, 20_000, 5, -9_000, 300],
        ticks: 300,
        everyMs: 1_000,
        options: { overlap: 'queue' },
        fate: lossy,
        seed,
      });
      expect(twice(runs)).toEqual([]);
      const ran = counts(runs);
      expect(tickTimes.slice(0, -5).filter((tickMs) => !ran.has(tickMs))).toEqual([]);
    },
  );

  it('of which one after the other is killed: no tick twice, and the others go on', async () => {
    const { runs, tickTimes } = await runFleet({
      offsetsMs: [0, 10, 20, 30, 40],
      ticks: 2_000,
      onSecond(instances, second) {
        // The fastest clock runs them all: it is killed in the middle of something, four times.
        const last = instances.filter(({ clock }) => !clock.isDead).at(-1);
        if (second % 40 === 20 && instances[0] !== last && last) {
          last.clock.isDead = true;
          last.store.fate = () => 'lost';
        }
      },
    });
    expect(twice(runs)).toEqual([]);
    expect(new Set(runs.map(({ who }) => who)).size).toBe(5);
    // A killed process holds the lock until its ttl is over: ticks in between are skipped.
    expect(runs.length).toBeGreaterThan(tickTimes.length - 4 * (31_000 / EVERY_MS));
  });
});

describe('clocks that are further apart than the bound', () => {
  it('up to twice as far, do no harm while nobody is late', async () => {
    const { runs } = await runFleet({ offsetsMs: [0, 2 * BOUND_MS], options: { overlap: 'queue' } });
    expect(twice(runs)).toEqual([]);
  });

  it('and beyond that, run ticks twice', async () => {
    const { runs } = await runFleet({ offsetsMs: [0, 2 * BOUND_MS + 2_000], options: { overlap: 'queue' } });
    expect(twice(runs).length).toBeGreaterThan(100);
  });
});
