import { expect, it } from 'vitest';
import { Tallies } from '../../src/history/tallies.js';

const SLOTS = 12;
const KEYS = 1_000;

/** As full as they get: other keys in every slot, and one in all of them. */
function fullTallies(): Tallies {
  const tallies = new Tallies(SLOTS);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    for (let key = 1; key < KEYS; key += 1) tallies.of(`own/${slot}-${key}`, slot).counts.acquired += 1;
    tallies.of('own/busy', slot).counts.acquired += 1;
  }
  return tallies;
}

/** Processor time of this process, which a busy machine changes less than the time that passes. */
function cpuMs(work: () => unknown): number {
  const runs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...runs);
}

it('a summary adds up the slots, and changes none of them', () => {
  const tallies = fullTallies();
  for (let time = 0; time < 2; time += 1) {
    const { total, byKey } = tallies.summary(SLOTS - 1, () => true);
    expect(total.counts.acquired).toBe(SLOTS * KEYS);
    expect(byKey.size).toBe(SLOTS * (KEYS - 1) + 1);
    expect(byKey.get('own/busy')?.counts.acquired).toBe(SLOTS);
    expect(byKey.get('own/0-1')?.counts.acquired).toBe(1);
  }
});

it('a summary of 12,000 keys takes less than making them: it holds up all other requests', () => {
  const tallies = fullTallies();
  expect(cpuMs(() => tallies.summary(SLOTS - 1, () => true))).toBeLessThan(cpuMs(fullTallies));
});
