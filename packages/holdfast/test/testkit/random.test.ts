/** Random numbers that a seed repeats. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/testkit/index.js';

const draws = (seed: number): number[] => {
  const random = seededRandom(seed);
  return Array.from({ length: 1_000 }, () => random.next());
};

describe('seeded random numbers', () => {
  it('are the same for the same seed and others for its neighbours, also beyond 32 bits', () => {
    expect(draws(7)).toEqual(draws(7));
    for (const other of [6, 8, 7 + 2 ** 32]) expect(draws(other)).not.toEqual(draws(7));
  });

  it('are spread evenly from 0 up to 1', () => {
    for (const seed of [0, 1, 2, 99_999, 2 ** 40]) {
      const drawn = draws(seed);
      expect(drawn.every((one) => one >= 0 && one < 1)).toBe(true);
      const mean = drawn.reduce((sum, one) => sum + one, 0) / drawn.length;
      expect(Math.abs(mean - 0.5)).toBeLessThan(0.06);
    }
  });

  it('pick within bounds, by weight, and nothing from nothing', () => {
    const random = seededRandom(3);
    const numbers = Array.from({ length: 500 }, () => random.between(2, 4));
    expect(new Set(numbers)).toEqual(new Set([2, 3, 4]));
    const names = Array.from({ length: 500 }, () => random.weighted({ often: 9, seldom: 1, never: 0 }));
    expect(names.filter((name) => name === 'often').length).toBeGreaterThan(400);
    expect(names).not.toContain('never');
    expect(() => random.pick([])).toThrow(RangeError);
  });
});
