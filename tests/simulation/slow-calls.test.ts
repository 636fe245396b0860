/** Contention on a compare-and-swap engine whose calls are slow: waiters that give up at once, and readers and writers of one key. */
import { describe, expect, it } from 'vitest';
import { Crowd } from './crowd.js';

const SEED = Number(process.env.HOLDFAST_SEED ?? 1);

/** Latency of 20 to 70 ms per call; and 200 calls per second, so that calls wait for each other. */
const FAR = { wayMsMin: 10, wayMs: 35, serviceMs: 0.2 };
const BUSY = { wayMsMin: 1, wayMs: 5, serviceMs: 5 };

const WAITERS = 30;

interface Withdrawals {
  readonly tookMs: readonly number[];
  readonly writes: number;
  readonly failures: number;
  readonly isHeld: boolean;
}

/** Waiters of a held lock give up at once. Returns how long their releases took. */
async function giveUp(crowd: Crowd, isOneStore: boolean): Promise<Withdrawals> {
  const { schedule, count } = crowd;
  const { locks: holder } = crowd.open('holder');
  const lease = await crowd.awaited(holder.acquire('k', { ttl: 5_000 }), 10_000);
  const stop = new AbortController();
  const clients = isOneStore
    ? crowd.openMany('waiters', WAITERS)
    : Array.from({ length: WAITERS }, (_, index) => crowd.open(`waiter ${index}`));
  const refusals = clients.map(async ({ locks }) => {
    const waiting = locks.acquire('k', { ttl: 30_000, wait: 600_000, signal: stop.signal });
    await expect(waiting).rejects.toThrow();
  });
  await schedule.runUntil(schedule.nowMs + 30_000);
  const tookMs = new Map<string, number>();
  let failures = 0;
  crowd.onAnswer = (command, ms, outcome) => {
    if (command.kind !== 'release') return;
    const id = `${command.hold.process} ${command.hold.number}`;
    if (outcome instanceof Error) failures += 1;
    else tookMs.set(id, tookMs.get(id) ?? ms);
  };
  const before = count.writes;
  stop.abort();
  await schedule.runUntil(schedule.nowMs + 10_000);
  await Promise.all(refusals);
  expect(crowd.lineLength).toBe(0);
  const writes = count.writes - before;
  return { tookMs: [...tookMs.values()], writes, failures, isHeld: lease.held };
}

describe.each([true, false])(`${WAITERS} waiters give up at once, on an engine with wake-ups: %s`, (push) => {
  it.each([
    { name: 'far away', engine: FAR, msMax: 3_000 },
    { name: 'with 200 calls per second', engine: BUSY, msMax: 3_000 },
  ])(
    '$name: the holder keeps its lock, and each has withdrawn after a few writes',
    async (given) => {
      const crowd = new Crowd({ ...given.engine, push, seed: SEED });
      const { tookMs, writes, failures, isHeld } = await giveUp(crowd, false);
      expect(isHeld).toBe(true);
      expect(failures).toBe(0);
      expect(Math.max(...tookMs)).toBeLessThan(given.msMax);
      expect(writes).toBeLessThan(6 * WAITERS);
    },
    60_000,
  );

  it('in one process they share a write, after one each that lost the race', async () => {
    const crowd = new Crowd({ ...BUSY, push, seed: SEED });
    const { tookMs, writes, failures } = await giveUp(crowd, true);
    expect(failures).toBe(0);
    expect(Math.max(...tookMs)).toBeLessThan(1_000);
    // The holder renews meanwhile.
    expect(writes).toBeLessThan(2 * WAITERS);
  }, 60_000);
});

describe.each([true, false])(
  'two writers and four readers of one key, on an engine with wake-ups: %s',
  (push) => {
    it.each([
      { name: '20 to 70 ms', engine: FAR, msMax: 10_000 },
      { name: '120 to 250 ms', engine: { wayMsMin: 60, wayMs: 125, serviceMs: 0.2 }, msMax: 60_000 },
    ])(
      'calls of $name: none of them is kept out of a short queue',
      async ({ engine, msMax }) => {
        let longestMs = 0;
        for (let run = 0; run < 4; run++) {
          const crowd = new Crowd({ ...engine, push, seed: SEED + run });
          const { schedule } = crowd;
          const waitingSince = new Map<string, number>();
          const loop = async (index: number): Promise<void> => {
            const { process, locks } = crowd.open(`user ${index}`);
            const { read, write } = locks.readWrite('k');
            for (;;) {
              waitingSince.set(process.name, schedule.nowMs);
              const use = async (): Promise<void> => {
                longestMs = Math.max(longestMs, schedule.nowMs - (waitingSince.get(process.name) ?? 0));
                waitingSince.delete(process.name);
                await process.sleep(10);
              };
              await (index < 2 ? write : read).withLock(use, { ttl: 10_000, wait: 600_000 });
              await process.sleep(5);
            }
          };
          for (let index = 0; index < 6; index++) void loop(index);
          await schedule.runUntil(120_000);
          for (const sinceMs of waitingSince.values())
            longestMs = Math.max(longestMs, schedule.nowMs - sinceMs);
        }
        expect(longestMs).toBeLessThan(msMax);
      },
      120_000,
    );
  },
);
