/** Ticks of cron expressions on the days on which the clocks of a zone go forward or back. */
import { describe, expect, it } from 'vitest';
import { ticksOf } from '../../src/schedule/ticks.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The ticks of a day of UTC, each the first after the one before. */
function ticksOn(day: string, expression: string, timeZone: string): readonly number[] {
  const ticks = ticksOf(expression, timeZone);
  const found: number[] = [];
  let next = ticks.after(Date.parse(day) - 1);
  while (next !== null && next < Date.parse(day) + DAY_MS) {
    found.push(next);
    next = ticks.after(next);
  }
  return found;
}

const shown = (ticks: readonly number[]): string =>
  ticks.map((ms) => new Date(ms).toISOString().slice(11, 16)).join(' ');

describe('times of the day', () => {
  it.each([
    ['30 2 * * *', '00:30'],
    ['30 2,14 * * *', '00:30 13:30'],
    ['0 30 2,14 * * *', '00:30 13:30'],
    ['0,30 2 * * *', '00:00 00:30'],
    ['*/30 2 * * *', '00:00 00:30'],
    ['30 1-2 * * *', '00:30'],
    ['30 */8 * * *', '07:30 15:30 23:30'],
    ['30 */2 * * *', '00:30 03:30 05:30 07:30 09:30 11:30 13:30 15:30 17:30 19:30 21:30 23:30'],
    ['30 2-4 25 10 *', '00:30 02:30 03:30'],
    ['0 3,4 * * 0', '02:00 03:00'],
    ['2026-10-25T02:30:00', '00:30'],
    ['2026-10-25T01:30:00Z', '01:30'],
  ])('%s is run once when clocks go back, in the first of the two hours', (expression, times) => {
    expect(shown(ticksOn('2026-10-25', expression, 'Europe/Berlin'))).toBe(times);
  });

  it.each([
    ['30 2 * * *', '01:00'],
    ['30 2,14 * * *', '01:00 12:30'],
    ['0,30 2 * * *', '01:00'],
    ['* 2 * * *', '01:00'],
    ['30 1-2 * * *', '00:30 01:00 23:30'],
    ['0,30 2-3 * * *', '01:00 01:30'],
    ['30 1,3 * * *', '00:30 01:30 23:30'],
  ])('%s is run at the change when clocks go forward and leave it out', (expression, times) => {
    expect(shown(ticksOn('2026-03-29', expression, 'Europe/Berlin'))).toBe(times);
  });

  it.each([
    ['America/New_York', '30 1,13 * * *', '2026-11-01', '05:30 18:30'],
    ['America/New_York', '30 2,13 * * *', '2026-03-08', '07:00 17:30'],
    // Clocks that change by half an hour, and by two.
    ['Australia/Lord_Howe', '45 1,2 * * *', '2026-04-04', '14:45 16:15'],
    ['Australia/Lord_Howe', '15 2,4 * * *', '2026-10-03', '15:30 17:15'],
    ['Antarctica/Troll', '30 1-3 * * *', '2026-10-25', '00:30 03:30'],
    // The last hour of a day is left out, or comes twice.
    ['America/Nuuk', '30 12,23 * * *', '2026-03-29', '01:00 13:30'],
    ['America/Nuuk', '30 12,23 * * *', '2026-10-25', '00:30 14:30'],
    // A day without its midnight.
    ['Africa/Cairo', '0 0,12 * * *', '2026-04-23', '10:00 22:00'],
  ])('in %s: %s on %s', (timeZone, expression, day, times) => {
    expect(shown(ticksOn(day, expression, timeZone))).toBe(times);
  });
});

describe('an expression for every hour', () => {
  it.each(['0 * * * *', '0 0 */1 * * *', '0 0-23 * * *', '@hourly'])(
    '%s follows the hours that pass',
    (expression) => {
      for (const day of ['2026-03-29', '2026-10-25']) {
        const everyHour = Array.from({ length: 24 }, (_, hour) => Date.parse(day) + hour * 60 * MINUTE_MS);
        expect(ticksOn(day, expression, 'Europe/Berlin')).toEqual(everyHour);
      }
    },
  );

  it('has every ten minutes a tick, in both of the two hours', () => {
    for (const day of ['2026-03-08', '2026-11-01']) {
      const ticks = ticksOn(day, '*/10 * * * *', 'America/New_York');
      expect(ticks).toEqual(
        Array.from({ length: 144 }, (_, index) => Date.parse(day) + index * 10 * MINUTE_MS),
      );
    }
  });
});

describe('from whichever moment they are computed', () => {
  const expressions = [
    '30 2 * * *',
    '30 2,14 * * *',
    '30 1-2 * * *',
    '15 */2 * * *',
    '*/20 * * * *',
    '40 0,23 * * *',
  ];

  it.each([
    ['Europe/Berlin', '2026-03-29'],
    ['Europe/Berlin', '2026-10-25'],
    ['America/New_York', '2026-11-01'],
    ['Australia/Lord_Howe', '2026-04-04'],
    ['Antarctica/Troll', '2026-10-25'],
    ['America/Nuuk', '2026-10-25'],
  ])('ticks in %s on %s are the same', (timeZone, day) => {
    for (const expression of expressions) {
      const ticks = ticksOf(expression, timeZone);
      const known = ticksOn(day, expression, timeZone);
      for (let ms = Date.parse(day); ms < (known.at(-1) ?? 0); ms += 11 * MINUTE_MS + 1) {
        expect(ticks.after(ms)).toBe(known.find((tick) => tick > ms));
      }
      for (const tick of known) expect(ticks.after(tick - 1)).toBe(tick);
    }
  });
});
