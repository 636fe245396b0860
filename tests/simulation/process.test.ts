import { beforeEach, describe, expect, it } from 'vitest';
import { SimulatedProcess } from './src/process.js';
import { RandomSource } from './src/random-source.js';
import { Schedule } from './src/schedule.js';

let schedule: Schedule;
let process: SimulatedProcess;
let ran: string[];

beforeEach(() => {
  schedule = new Schedule();
  process = new SimulatedProcess('p', schedule, new RandomSource(7));
  ran = [];
});

const timer = (delayMs: number, name: string): void => {
  process.clock.timer(delayMs, () => ran.push(name));
};

describe('a simulated process', () => {
  it('has clocks that run within a hundredth of the simulation', async () => {
    const { clock } = process;
    const before = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    await schedule.runUntil(100_000);
    for (const passedMs of [clock.monotonicMs() - before.monotonicMs, clock.wallMs() - before.wallMs]) {
      expect(Math.abs(passedMs - 100_000)).toBeLessThan(1_000);
    }
  });

  it('fires its timers when they are due, and none that was cancelled', async () => {
    timer(100, 'one');
    process.clock.timer(50, () => ran.push('never')).cancel();
    await schedule.runUntil(95);
    expect(ran).toEqual([]);
    await schedule.runUntil(110);
    expect(ran).toEqual(['one']);
    expect(process.timers).toBe(0);
  });

  it('F1: runs nothing while paused, and everything after', async () => {
    timer(10, 'timer');
    process.pause({ suspend: false });
    schedule.after(20, () => process.deliver(() => ran.push('message')));
    await schedule.runUntil(1_000);
    expect(ran).toEqual([]);
    process.onResume = () => ran.push('resumed');
    process.resume();
    await schedule.runUntil(1_001);
    expect(ran[0]).toBe('resumed');
    expect([...ran].sort()).toEqual(['message', 'resumed', 'timer']);
    expect(process.pausedMs).toBe(1_000);
  });

  it('F1: a suspended machine stops its monotonic clock and timers, and its wall clock goes on', async () => {
    timer(100, 'timer');
    const before = { monotonicMs: process.clock.monotonicMs(), wallMs: process.clock.wallMs() };
    process.pause({ suspend: true });
    await schedule.runUntil(5_000);
    process.resume();
    await schedule.runUntil(5_050);
    expect(process.clock.monotonicMs() - before.monotonicMs).toBeLessThan(100);
    expect(process.clock.wallMs() - before.wallMs).toBeGreaterThan(4_900);
    expect(ran).toEqual([]);
    await schedule.runUntil(5_110);
    expect(ran).toEqual(['timer']);
  });

  it('runs nothing any more after a crash', async () => {
    timer(10, 'timer');
    process.crash();
    process.deliver(() => ran.push('message'));
    await schedule.runUntil(100);
    expect(ran).toEqual([]);
    expect(process.timers).toBe(0);
  });

  it('F11: its wall clock may be set, and its monotonic clock does not care', () => {
    const before = { monotonicMs: process.clock.monotonicMs(), wallMs: process.clock.wallMs() };
    process.setWallClock(-60_000);
    expect(process.clock.monotonicMs()).toBe(before.monotonicMs);
    expect(process.clock.wallMs()).toBe(before.wallMs - 60_000);
  });
});
