import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../src/protocol/errors.js';
import { ticksOf, type When } from '../../src/schedule/ticks.js';

const at = (text: string): number => Date.parse(text);
const shown = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

function following(when: When, timeZone: string | undefined, from: string, count: number): (string | null)[] {
  const ticks = ticksOf(when, timeZone);
  const found: (string | null)[] = [];
  let next: number | null = at(from);
  while (next !== null && found.length < count) {
    next = ticks.after(next);
    found.push(shown(next));
  }
  return found;
}

describe('ticks of a period', () => {
  it('are its multiples since the epoch, on every machine', () => {
    expect(following({ every: '5m' }, undefined, '2026-03-01T12:03:10Z', 2)).toEqual([
      '2026-03-01T12:05:00.000Z',
      '2026-03-01T12:10:00.000Z',
    ]);
    const ticks = ticksOf({ every: '5m' }, undefined);
    expect(shown(ticks.after(at('2026-03-01T12:05:00Z')))).toBe('2026-03-01T12:10:00.000Z');
    expect(shown(ticks.upTo(at('2026-03-01T12:05:00Z')))).toBe('2026-03-01T12:05:00.000Z');
    expect(shown(ticks.upTo(at('2026-03-01T12:04:59.999Z')))).toBe('2026-03-01T12:00:00.000Z');
  });
});

describe('ticks of a cron expression', () => {
  it('are in UTC by default', () => {
    expect(following('0 3 * * *', undefined, '2026-03-01T12:00:00Z', 2)).toEqual([
      '2026-03-02T03:00:00.000Z',
      '2026-03-03T03:00:00.000Z',
    ]);
  });

  it.each([
    ['0 3 * * *', '2026-03-05T12:00:00Z', '2026-03-05T03:00:00.000Z'],
    ['0 3 * * *', '2026-03-05T03:00:00Z', '2026-03-05T03:00:00.000Z'],
    ['0 3 * * *', '2026-03-05T02:59:59.999Z', '2026-03-04T03:00:00.000Z'],
    ['* * * * * *', '2026-03-05T12:00:00.700Z', '2026-03-05T12:00:00.000Z'],
    ['0 0 29 2 *', '2026-02-10T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2027-01-01T00:00:00', '2026-02-10T00:00:00Z', null],
  ])('%s: the last one up to %s is %s', (expression, up, last) => {
    expect(shown(ticksOf(expression, undefined).upTo(at(up)))).toBe(last);
  });
});

describe('what is no schedule', () => {
  it.each([
    ['61 * * * *', undefined, /"61 \* \* \* \*" .*minute/],
    ['every day', undefined, /is invalid/],
    ['0 3 * * *', 'Mars/Olympus', /"Mars\/Olympus"/],
    [{ every: '10ms' }, undefined, /every is "10ms"/],
    [{ each: '5m' } as never, undefined, /each/],
    [{ every: '5m' }, 'UTC', /timeZone belongs to a cron expression/],
    [5 as never, undefined, /has to be a cron expression/],
    [null as never, undefined, /has to be a cron expression/],
  ])('%j in %s is refused', (when, timeZone, message) => {
    expect(() => ticksOf(when as When, timeZone)).toThrow(InvalidArgumentError);
    expect(() => ticksOf(when as When, timeZone)).toThrow(message);
  });
});
