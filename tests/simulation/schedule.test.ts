import { expect, it } from 'vitest';
import { Schedule } from './src/schedule.js';

it('runs what is due in the order of time, and of booking at one moment', async () => {
  const schedule = new Schedule();
  const ran: string[] = [];
  for (const [atMs, name] of [
    [30, 'late'],
    [10, 'first'],
    [10, 'second'],
    [20, 'middle'],
  ] as const) {
    schedule.after(atMs, () => ran.push(`${name} at ${schedule.nowMs}`));
  }
  await schedule.runUntil(25);
  expect(ran).toEqual(['first at 10', 'second at 10', 'middle at 20']);
  expect(schedule.nowMs).toBe(25);
  await schedule.runUntil(30);
  expect(ran.at(-1)).toBe('late at 30');
});

it('lets every promise settle before time goes on', async () => {
  const schedule = new Schedule();
  const seen: number[] = [];
  schedule.after(1, () => {
    const chain = async (): Promise<void> => {
      for (let step = 0; step < 50; step++) await null;
      seen.push(schedule.nowMs);
    };
    void chain();
  });
  schedule.after(2, () => undefined);
  await schedule.runUntil(10);
  expect(seen).toEqual([1]);
});

it('never runs what was cancelled', async () => {
  const schedule = new Schedule();
  let ran = false;
  const event = schedule.after(5, () => {
    ran = true;
  });
  schedule.after(1, () => event.cancel());
  await schedule.runUntil(10);
  expect(ran).toBe(false);
});

it('keeps order among thousands of bookings', async () => {
  const schedule = new Schedule();
  const times: number[] = [];
  for (let index = 0; index < 5_000; index++) {
    schedule.quietlyAfter((index * 7_919) % 5_003, () => times.push(schedule.nowMs));
  }
  await schedule.runUntil(6_000);
  expect(times).toHaveLength(5_000);
  expect(times).toEqual([...times].sort((a, b) => a - b));
});

it('refuses to stand still for ever', async () => {
  const schedule = new Schedule();
  const again = (): void => {
    schedule.quietlyAfter(0, again);
  };
  again();
  await expect(schedule.runUntil(1)).rejects.toThrow('Time stands still');
});
