import { describe, expect, it } from 'vitest';
import { currentLease } from '../../src/lease/work-context.js';
import { InvalidArgumentError, LeaseLostError, StoreError } from '../../src/protocol/errors.js';
import { schedule } from '../../src/schedule/index.js';
import { settle } from '../engine/stage.js';
import { EPOCH_MS, type Instance, world } from './instances.js';
import { aliveTimers, HOUR_MS, MINUTE_MS, noted, tickAfter } from './noted.js';

const DAY_MS = 24 * HOUR_MS;

describe('a schedule', () => {
  it('runs its work at each tick, under the lock of its key, and says when it is next', async () => {
    const { time, nowMs, open } = world();
    const began = nowMs();
    const { ticks, leases, schedule: made } = noted(open(), { every: '5m' });
    expect(made.next?.toISOString()).toBe(tickAfter(began, 5 * MINUTE_MS));
    await time.advance(15 * MINUTE_MS);
    expect(ticks).toEqual([0, 1, 2].map((at) => tickAfter(began, 5 * MINUTE_MS, at)));
    expect(leases.map(({ key, state }) => [key, state])).toEqual(ticks.map(() => ['job', 'released']));
    expect(made.next?.toISOString()).toBe(tickAfter(nowMs(), 5 * MINUTE_MS));
    await made.stop();
    expect(made.next).toBeNull();
  });

  it('runs at the times of a cron expression in its time zone', async () => {
    const { time, nowMs, open } = world();
    const { ticks, schedule: made } = noted(open(), '0 0 1 * *', { timeZone: 'America/New_York' });
    const next = made.next?.toISOString() ?? '';
    expect(next).toMatch(/-01T04:00:00.000Z$/);
    time.pause(Date.parse(next) - nowMs() - 25_000);
    await time.advance(30_000);
    expect(ticks).toEqual([next]);
    await made.stop();
  });

  it('keeps the process alive until it is stopped', async () => {
    const { time, open } = world();
    const { schedule: made } = noted(open(), { every: '5m' });
    await settle();
    expect(aliveTimers(time.timers)).toBe(1);
    await made.stop();
    expect(aliveTimers(time.timers)).toBe(0);
  });

  it('runs on when its wall clock is set back, without running a tick again', async () => {
    const { time, open } = world();
    const instance = open();
    const { ticks } = noted(instance, { every: '1m' });
    await time.advance(2 * MINUTE_MS);
    instance.clock.offMs = -90_000;
    await time.advance(4 * MINUTE_MS);
    expect(ticks.length).toBeGreaterThanOrEqual(4);
    expect(ticks).toEqual([...new Set(ticks)].sort());
  });

  it.each([
    ['at its start', 0],
    ['for a moment, later', 5 * MINUTE_MS],
  ])('whose wall clock was ahead %s goes on when that is corrected', async (_, afterMs) => {
    const { time, nowMs, open } = world();
    const instance = open(afterMs === 0 ? HOUR_MS : 0);
    const { ticks, schedule: made } = noted(instance, { every: '1m' });
    await time.advance(afterMs);
    instance.clock.offMs = HOUR_MS;
    await time.advance(2 * MINUTE_MS + 10_000);
    instance.clock.offMs = 0;
    const wrong = ticks.length;
    const correctedMs = nowMs();
    await time.advance(2 * HOUR_MS);
    expect(ticks.slice(wrong)).toEqual([...new Set(ticks.slice(wrong))].sort());
    expect(new Set(ticks).size).toBe(ticks.length);
    // Those that were run ahead of their time are not run again.
    const ahead = new Set(ticks.slice(0, wrong));
    const due = Array.from({ length: 120 }, (__, at) => tickAfter(correctedMs, MINUTE_MS, at));
    expect(ticks.slice(wrong)).toEqual(due.filter((tick) => !ahead.has(tick)));
    await made.stop();
  });

  it('does not work under the lease of the work that made it', async () => {
    const { time, open } = world();
    const { locks, clock } = open();
    const seen: unknown[] = [];
    const errors: unknown[] = [];
    void locks.withLock('job', async () => {
      schedule(
        locks,
        'job',
        { every: '1m' },
        () => seen.push(currentLease('job')?.token === outer, currentLease('other')),
        { overlap: 'queue', onError: (error) => errors.push(error) },
      );
      const outer = currentLease('job')?.token;
      await locks.withLock('other', () => clock.sleep(90_000));
    });
    await time.advance(2 * MINUTE_MS);
    expect(errors).toEqual([]);
    expect(seen.slice(0, 2)).toEqual([false, undefined]);
  });

  it('reports work that fails, and goes on', async () => {
    const { time, open } = world();
    const failures: [unknown, Date][] = [];
    const failure = new Error('no paper');
    const fail = () => Promise.reject(failure);
    const options = { onError: (error: unknown, tick: Date) => failures.push([error, tick]) };
    const made = schedule(open().locks, 'job', { every: '1m' }, fail, options);
    await time.advance(2 * MINUTE_MS);
    expect(failures.map(([error]) => error)).toEqual([failure, failure]);
    expect(failures[0]?.[1]).toBeInstanceOf(Date);
    await made.stop();
  });

  it.each([
    ['without onError', undefined],
    [
      'with an onError that throws',
      () => {
        throw new Error('no paper either');
      },
    ],
    ['with an onError that rejects', () => Promise.reject(new Error('no paper either'))],
  ])('%s, warns of work that fails', async (_, onError) => {
    const { time, open } = world();
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    const fail = () => Promise.reject(new Error('no paper'));
    const made = schedule(open().locks, 'job', { every: '1m' }, fail, onError && { onError });
    await time.advance(MINUTE_MS);
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off('warning', onWarning);
    expect(warnings.join('\n')).toMatch(/the schedule "job" .*no paper/i);
    await made.stop();
  });

  it('asks again while the store does not answer, and reports a tick that could not be asked for', async () => {
    const { time, open } = world();
    const instance = open();
    const { ticks, errors, schedule: made } = noted(instance, { every: '1m' });
    instance.store.fate = () => 'rejected';
    await time.advance(MINUTE_MS + 5_000);
    instance.store.fate = () => 'pass';
    await time.advance(10_000);
    expect(ticks).toHaveLength(1);
    expect(errors).toEqual([]);
    instance.store.fate = () => 'lost';
    await time.advance(MINUTE_MS + 35_000);
    expect(ticks).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(StoreError);
    instance.store.fate = () => 'pass';
    await time.advance(MINUTE_MS);
    await made.stop();
  });

  it('loses the lease of work that holds it longer than maxHold', async () => {
    const { time, open } = world();
    const { leases, errors } = noted(open(), { every: '1h' }, { maxHold: '10s' }, 30_000);
    await time.advance(HOUR_MS + MINUTE_MS);
    expect(leases[0]?.signal.reason).toMatchObject({ reason: 'max-hold' });
    expect(errors[0]).toBeInstanceOf(LeaseLostError);
  });
});

describe('a tick while an earlier one still runs', () => {
  it('is skipped by default, also when another process runs the earlier one', async () => {
    const { time, open } = world();
    const ahead = noted(open(50), { every: '1m' }, {}, 90_000);
    const other = noted(open(), { every: '1m' }, {}, 90_000);
    await time.advance(8 * MINUTE_MS);
    expect(ahead.ticks).toHaveLength(4);
    expect(other.ticks).toEqual([]);
  });

  it('is queued where that was asked for, and run in order', async () => {
    const { time, open } = world();
    const { ticks, ended } = noted(open(), { every: '1m' }, { overlap: 'queue' }, 90_000);
    await time.advance(9 * MINUTE_MS);
    expect(ticks.length).toBeGreaterThanOrEqual(5);
    expect(ticks).toEqual([...new Set(ticks)].sort());
    expect(ended).toEqual(ticks.slice(0, ended.length));
    const minutes = ticks.map((tick) => Date.parse(tick) / MINUTE_MS);
    expect(minutes.map((minute) => minute - (minutes[0] ?? 0))).toEqual(minutes.map((_, at) => at));
  });

  it('is not queued without a limit', async () => {
    const { time, open } = world();
    const instance = open();
    noted(instance, { every: '1s' }, { overlap: 'queue' }, HOUR_MS);
    await time.advance(10 * MINUTE_MS);
    const claimed = new Set(instance.store.applied.map(({ key }) => key));
    expect(claimed.size).toBeLessThan(110);
  });
});

describe('a tick that was missed', () => {
  it.each([
    ['skip', 0],
    ['run-once', 1],
  ] as const)('by a process that stood still: %s', async (missed, runs) => {
    const { time, open } = world();
    const { ticks, schedule: made } = noted(open(), { every: '1h' }, { missed });
    const next = made.next?.getTime() ?? 0;
    await time.advance(next - EPOCH_MS - time.nowMs - 5_000);
    time.pause(3 * HOUR_MS + MINUTE_MS);
    await time.advance(20_000);
    expect(ticks).toEqual(runs === 0 ? [] : [new Date(next + 3 * HOUR_MS).toISOString()]);
    await time.advance(HOUR_MS);
    expect(ticks).toHaveLength(runs + 1);
  });

  it('is not missed when another process ran it', async () => {
    const { time, open } = world();
    const asleep = open();
    const late = noted(asleep, { every: '1h' }, { missed: 'run-once' });
    const awake = noted(open(), { every: '1h' }, { missed: 'run-once' });
    await time.advance(MINUTE_MS);
    // Its clock stands still, and so do its ticks.
    for (let seconds = 0; seconds < 2.5 * 3_600; seconds += 5) {
      asleep.clock.offMs -= 5_000;
      await time.advance(5_000);
    }
    asleep.clock.offMs = 0;
    await time.advance(MINUTE_MS);
    expect(awake.ticks.length).toBeGreaterThanOrEqual(2);
    expect(late.ticks).toEqual([]);
  });

  it('while nobody ran, is made up for by a process that starts, once, if the schedule ran before', async () => {
    const { time, nowMs, open } = world();
    const first = noted(open(), { every: '1h' }, { missed: 'run-once' });
    await time.advance(2 * HOUR_MS);
    expect(first.ticks).toHaveLength(2);
    await first.schedule.stop();
    await time.advance(3 * HOUR_MS);
    const options = { missed: 'run-once' } as const;
    const [a, b] = [noted(open(), { every: '1h' }, options), noted(open(), { every: '1h' }, options)];
    await time.advance(1_000);
    expect([...a.ticks, ...b.ticks]).toEqual([tickAfter(nowMs(), HOUR_MS, -1)]);
    await time.advance(MINUTE_MS);
    expect(a.ticks.length + b.ticks.length).toBe(1);
  });

  it('is not made up for by a new schedule "report" because "report@eu" ran before', async () => {
    const { time, open } = world();
    const { locks } = open();
    const ran: Date[] = [];
    const options = { missed: 'run-once' } as const;
    schedule(locks, 'report@eu', { every: '1m' }, () => undefined, options);
    await time.advance(2 * MINUTE_MS);
    schedule(locks, 'report', { every: '1h' }, (_, tick) => ran.push(tick), options);
    await time.advance(MINUTE_MS);
    expect(ran).toEqual([]);
  });

  it('is made up for whichever spelling of its key the schedule was given', async () => {
    const { time, open } = world();
    const ran: Date[] = [];
    const start = () =>
      schedule(open().locks, 'cafe\u0301', { every: '1h' }, (_, tick) => ran.push(tick), {
        missed: 'run-once',
      });
    const first = start();
    await time.advance(HOUR_MS);
    await first.stop();
    await time.advance(2 * HOUR_MS);
    start();
    await time.advance(1_000);
    expect(ran).toHaveLength(2);
  });

  it('is not made up for by a schedule that is new', async () => {
    const { time, open } = world();
    const { ticks } = noted(open(), { every: '1h' }, { missed: 'run-once' });
    await time.advance(MINUTE_MS);
    expect(ticks).toEqual([]);
  });

  it('is not made up for after a week, when nobody remembers whether it ran', async () => {
    const { time, nowMs, open } = world();
    const runner = open();
    const sleeper = open();
    const asleep = noted(sleeper, '0 0 1 * *', { missed: 'run-once' });
    const awake = noted(runner, '0 0 1 * *', { missed: 'run-once' });
    const next = awake.schedule.next?.getTime() ?? 0;
    time.pause(next - nowMs() - 5_000);
    sleeper.clock.offMs = -9 * DAY_MS;
    await time.advance(20_000);
    expect(awake.ticks).toHaveLength(1);
    time.pause(8 * DAY_MS);
    sleeper.clock.offMs = 0;
    await time.advance(MINUTE_MS);
    expect(asleep.ticks).toEqual([]);
  });

  it('leaves ten keys of the last ticks behind, and no more', async () => {
    const { time, memory, open } = world();
    noted(open(), { every: '5m' }, { missed: 'run-once' });
    await time.advance(2 * HOUR_MS);
    let keys = 0;
    for await (const { key } of memory.list({ prefix: 'default/job@' })) keys += key === '' ? 0 : 1;
    expect(keys).toBeGreaterThan(8);
    expect(keys).toBeLessThan(13);
  });
});

describe('what a schedule is given', () => {
  const work = () => undefined;
  it.each<[string, (instance: Instance) => unknown]>([
    ['locks of another kind', () => schedule({} as never, 'job', { every: '1m' }, work)],
    ['an empty key', ({ locks }) => schedule(locks, '', { every: '1m' }, work)],
    ['a key that leaves no room', ({ locks }) => schedule(locks, 'k'.repeat(500), { every: '1m' }, work)],
    ['no work', ({ locks }) => schedule(locks, 'job', { every: '1m' }, undefined as never)],
    ['a time that never comes', ({ locks }) => schedule(locks, 'job', '0 0 30 2 *', work)],
    ['a time that is over', ({ locks }) => schedule(locks, 'job', '2020-01-01T00:00:00', work)],
    [
      'another missed',
      ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { missed: 'all' as never }),
    ],
    [
      'another overlap',
      ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { overlap: 'run' as never }),
    ],
    ['jitter that is none', ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { jitter: -1 })],
    ['maxHold that is none', ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { maxHold: 1 })],
    [
      'onError that is none',
      ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { onError: 1 as never }),
    ],
    [
      'a signal that is none',
      ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { signal: 1 as never }),
    ],
    [
      'a zone that is none',
      ({ locks }) => schedule(locks, 'job', '* * * * *', work, { timeZone: 1 as never }),
    ],
    ['an empty zone', ({ locks }) => schedule(locks, 'job', '* * * * *', work, { timeZone: '' })],
    ['an unknown option', ({ locks }) => schedule(locks, 'job', { every: 900 }, work, { ttl: 1 } as object)],
  ])('%s is refused at once, and nothing is left', async (_, call) => {
    const { time, open } = world();
    const instance = open();
    expect(() => call(instance)).toThrow(InvalidArgumentError);
    await time.advance(HOUR_MS);
    expect(instance.store.applied).toEqual([]);
    expect(aliveTimers(time.timers)).toBe(0);
  });
});
