import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { LeaseLostError } from '../../src/index.js';
import { TimerQueue } from '../../src/timer-queue.js';
import { FakeClock, settle, stage } from './stage.js';

test('F1: after a pause, held is false and assertHeld throws before any timer has run', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: 1_000 });
  clock.pause(1_001);
  expect(lease.held).toBe(false);
  expect(() => lease.assertHeld()).toThrow(LeaseLostError);
  expect(lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  expect(lease.state).toBe('lost');
  expect(lease.remainingMs).toBe(0);
});

test('F2: the deadline counts from before the answered attempt was sent, less the drift margin', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = () => 'kept';
  const acquiring = locks.acquire('k', { ttl: 10_000, renew: false });
  await clock.advance(200);
  store.deliver();
  const lease = await acquiring;
  expect(lease.remainingMs).toBe(10_000 - 200 - 100 - 5);
});

test('F3, P14: the signal aborts at the deadline although the store hangs', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 1_000 });
  const { signal } = lease;
  store.fate = () => 'lost';
  await clock.advance(984);
  expect(signal.aborted).toBe(false);
  await clock.advance(3);
  expect(signal.aborted).toBe(true);
});

test('F11: a wall clock set forward past the deadline ends the lease; set back, the monotonic clock does', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const forward = await locks.acquire('forward', { ttl: 60_000 });
  clock.wallOffsetMs += 3_600_000;
  expect(forward.held).toBe(false);
  const back = await locks.acquire('back', { ttl: 1_000 });
  clock.wallOffsetMs -= 7_200_000;
  expect(back.held).toBe(true);
  store.fate = () => 'lost';
  clock.pause(1_000);
  expect(back.held).toBe(false);
});

test('F11, P17: no decision of the store uses the client clock', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  await a.locks.acquire('k', { ttl: 60_000 });
  clock.wallOffsetMs += 3_600_000;
  expect(await b.locks.tryAcquire('k')).toBeNull();
});

test('F1: after the machine slept, or its wall clock was set, the signal follows within a second or so', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: '1h', renew: false });
  const { signal } = lease;
  await clock.advance(2_500);
  clock.wallOffsetMs += 2 * 3_600_000;
  await clock.advance(1_001);
  expect(signal.aborted).toBe(true);
});

test('F11: after most of the ttl passed by the wall clock alone, the lease is renewed at once, and not lost', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 30_000 });
  const once = await locks.acquire('once', { ttl: 30_000, renew: false });
  await clock.advance(1_500);
  clock.wallOffsetMs += 25_000;
  await clock.advance(600);
  expect(store.countOf('renew')).toBe(1);
  expect(lease.remainingMs).toBeGreaterThan(25_000);
  await clock.advance(60_000);
  expect([lease.held, once.state]).toEqual([true, 'lost']);
});

test('F11: a stretched lease is renewed in time by the clock that is ahead', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: 30_000 });
  await lease.renew('1h');
  await clock.advance(1_500);
  clock.wallOffsetMs += 50 * 60_000;
  await clock.advance(20 * 60_000);
  expect(lease.held).toBe(true);
  await clock.advance(2 * 3_600_000);
  expect(lease.held).toBe(true);
});

test.each([3_540_000, 3_555_000])(
  'F1: a stretched lease outlives a sleep of %i ms, and its signal aborts once it is lost',
  async (sleptMs) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const lease = await locks.acquire('k', { ttl: 30_000 });
    const { signal } = lease;
    await lease.renew('1h');
    await clock.advance(1_500);
    clock.sleep(sleptMs);
    await clock.advance(90_000);
    expect([signal.aborted, lease.held]).toEqual([false, true]);
    store.fate = () => 'lost';
    await clock.advance(30_000);
    expect(signal.aborted).toBe(true);
  },
);

test('F12: a delay beyond 2^31 - 1 ms does not fire at once', async () => {
  let fired = false;
  const timer = systemClock.timer(2 ** 31 + 1_000, () => {
    fired = true;
  });
  timer.keepAlive(false);
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(fired).toBe(false);
  timer.cancel();
});

test('F12: the timers arms its timer again when it fires too early', async () => {
  const clock = new FakeClock();
  const timers = new TimerQueue(clock);
  let runs = 0;
  timers.call(clock.nowMs + 1_000, () => {
    runs += 1;
  });
  const [early] = clock.timers;
  if (!early) throw new Error('no timer was set');
  clock.timers.delete(early);
  clock.nowMs += 400;
  early.run();
  expect(runs).toBe(0);
  await clock.advance(600);
  expect(runs).toBe(1);
});

test('F26: a repeated grant that is nearly over is held for what is left of it, not for a whole ttl', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  let replies = 0;
  store.fate = (command) => {
    if (command.kind !== 'claim') return 'pass';
    replies += 1;
    return replies === 1 ? 'reply-lost' : 'pass';
  };
  const acquiring = locks.acquire('k', { ttl: 1_000, renew: false });
  await clock.advance(300);
  const lease = await acquiring;
  expect(lease.remainingMs).toBeLessThan(760);
  expect(lease.remainingMs).toBeGreaterThan(600);
});

test('P15: a lock whose grant arrives after its own deadline is given back, not returned', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  let claims = 0;
  store.fate = (command) => {
    if (command.kind !== 'claim') return 'pass';
    claims += 1;
    return claims === 1 ? 'kept' : 'pass';
  };
  const acquiring = locks.acquire('k', { ttl: 300, renew: false, wait: 5_000 });
  await settle();
  clock.pause(310);
  store.deliver();
  const lease = await acquiring;
  expect(claims).toBe(2);
  expect(lease.held).toBe(true);
  expect(lease.remainingMs).toBeGreaterThan(100);
});

test('appointments run in the order of their time, also when moved and cancelled', async () => {
  const clock = new FakeClock();
  const timers = new TimerQueue(clock);
  const ran: number[] = [];
  const wanted = new Map<number, number>();
  const all = Array.from({ length: 300 }, (_, index) => {
    wanted.set(index, clock.nowMs + ((index * 37) % 200));
    return timers.call(wanted.get(index) ?? 0, () => ran.push(index));
  });
  all.forEach((appointment, index) => {
    if (index % 3 === 0) {
      timers.cancel(appointment);
      wanted.delete(index);
    } else if (index % 7 === 0) {
      wanted.set(index, clock.nowMs + ((index * 53) % 200) + 0.5);
      timers.schedule(appointment, wanted.get(index) ?? 0);
    }
    if (wanted.has(index)) expect(timers.dueMs(appointment)).toBe(wanted.get(index));
  });
  await clock.advance(300);
  expect(ran.toSorted((a, b) => a - b)).toEqual([...wanted.keys()]);
  const times = ran.map((index) => wanted.get(index) ?? 0);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(clock.timers.size).toBe(0);
});
