import { expect, it } from 'vitest';
import { forgetOldest } from '../src/forget-oldest.js';

function numbers(count: number): Set<number> {
  return new Set(Array.from({ length: count }, (_, index) => index));
}

it('forgets the oldest of a few beyond the limit, and no more', () => {
  const some = numbers(5);
  forgetOldest(some, 5, (oldest) => some.delete(oldest));
  expect([...some]).toEqual([0, 1, 2, 3, 4]);
  forgetOldest(some, 3, (oldest) => some.delete(oldest));
  expect([...some]).toEqual([2, 3, 4]);
});

it('forgets a hundredth of many at a time, the oldest: nothing more has to be looked for with the next ones', () => {
  const many = numbers(10_001);
  forgetOldest(many, 10_000, (oldest) => many.delete(oldest));
  expect(many.size).toBe(9_901);
  expect(Math.min(...many)).toBe(100);
});

it('looks for nothing while there is room', () => {
  const entries = {
    size: 100,
    keys: () => {
      throw new Error('Nobody should ask.');
    },
  };
  forgetOldest(entries, 100, () => undefined);
});
