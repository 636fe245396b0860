import { expect, test } from 'vitest';
import { LeaseLostError, StoreError, UnsupportedError } from '../../src/index.js';
import { settle, stage, watchOf } from './stage.js';

test('a held lease renews itself when two thirds of its ttl are left', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 3_000 });
  await clock.advance(850);
  expect(store.countOf('renew')).toBe(0);
  await clock.advance(160);
  expect(store.countOf('renew')).toBe(1);
  await clock.advance(60_000);
  expect(lease.held).toBe(true);
  expect(store.countOf('renew')).toBeLessThan(70);
});

test('F6: a renewal that is answered after the release brings nothing back', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 3_000 });
  store.fate = (command) => (command.kind === 'renew' ? 'kept' : 'pass');
  await clock.advance(1_100);
  expect(store.countOf('renew')).toBe(1);
  await lease.release();
  store.deliver();
  await clock.advance(5_000);
  expect(lease.state).toBe('released');
  expect(await locks.inspect('k')).toBeNull();
});

test('F7, F8, P20: failed renewals are jeopardy, not loss; they go on, and the lease lives when one succeeds', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const jeopardies: number[] = [];
  locks.on('jeopardy', ({ remainingMs }) => jeopardies.push(remainingMs));
  const lease = await locks.acquire('k', { ttl: 3_000 });
  store.fate = (command) => (command.kind === 'renew' ? 'rejected' : 'pass');
  await clock.advance(1_500);
  expect(jeopardies.length).toBeGreaterThan(1);
  expect(lease.held).toBe(true);
  store.fate = () => 'pass';
  await clock.advance(10_000);
  expect(lease.held).toBe(true);
});

test('F7: a store that answers nothing loses the lease at its deadline and not before', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lost: string[] = [];
  locks.on('lost', ({ reason }) => lost.push(reason));
  const lease = await locks.acquire('k', { ttl: 2_000 });
  store.fate = () => 'lost';
  await clock.advance(1_970);
  expect(lease.held).toBe(true);
  await clock.advance(10);
  expect(lost).toHaveLength(1);
  expect(lease.state).toBe('lost');
});

test.each([10_000, 30_000, 300_000])(
  'F7: a lease of %i ms lives through a silence of three fifths of that, also one that begins with a renewal',
  async (ttl) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const lease = await locks.acquire('k', { ttl });
    store.fate = () => 'lost';
    while (store.countOf('renew') === 0) await clock.advance(ttl / 100);
    await clock.advance(0.6 * ttl);
    store.fate = () => 'pass';
    await clock.advance(ttl);
    expect(lease.held).toBe(true);
    expect(store.countOf('renew')).toBeLessThan(25);
  },
);

test('P16: a lease whose renewal the store refuses as lost is lost at once', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const lease = await a.locks.acquire('k', { ttl: 3_000 });
  a.store.hints = false;
  expect(await b.locks.evict('k')).toBe(1);
  expect(lease.held).toBe(true);
  await clock.advance(1_100);
  expect(lease.state).toBe('lost');
});

test('P18, P21: nothing is sent for a lease after it was released', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  for (let round = 0; round < 3; round++) {
    const lease = await locks.acquire('k', { ttl: 1_000 });
    await clock.advance(350);
    await lease.release();
  }
  const sent = store.applied.length;
  await clock.advance(60_000);
  expect(store.applied.length).toBe(sent);
});

test('a lease that does not renew itself ends at its ttl', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 1_000, renew: false });
  await clock.advance(1_100);
  expect(lease.state).toBe('lost');
  expect(store.countOf('renew')).toBe(0);
});

test('renew(ttl) stretches the lease, and automatic renewal does not shorten it (F28)', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: 1_000 });
  await lease.renew('1m');
  expect(lease.remainingMs).toBeGreaterThan(59_000);
  await lease.renew();
  expect(lease.remainingMs).toBeGreaterThan(59_000);
  await clock.advance(70_000);
  expect(lease.held).toBe(true);
});

test('the margin of a stretched lease is taken from what was granted', async () => {
  const { open } = stage();
  const { locks } = open();
  const lease = await locks.acquire('k', { ttl: 1_000, renew: false });
  await lease.renew(100_000);
  expect(lease.remainingMs).toBe(100_000 - 1_000 - 5);
});

test('renew rejects when the lease is over, and does not hang when the store does', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 60_000 });
  store.fate = () => 'lost';
  const renewing = watchOf(lease.renew());
  await clock.advance(2_100);
  expect(renewing.error).toBeInstanceOf(StoreError);
  expect(lease.held).toBe(true);
  store.fate = () => 'pass';
  await clock.advance(5_000);
  await lease.release();
  await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostError);
});

test('F14: renewals go before claims, in batches that are bounded', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  await Promise.all(Array.from({ length: 600 }, (_, index) => locks.acquire(`k${index}`, { ttl: 3_000 })));
  const batches: string[][] = [];
  const apply = store.apply.bind(store);
  store.apply = (commands) => {
    batches.push(commands.map(({ kind }) => kind));
    return apply(commands);
  };
  clock.timer(901, () => {
    for (let index = 0; index < 600; index++) void watchOf(locks.acquire(`other${index}`));
  });
  clock.pause(905);
  await clock.advance(5);
  const sent = batches.flat();
  expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(512);
  expect(sent.lastIndexOf('renew')).toBeLessThan(sent.indexOf('claim'));
});

test('ten thousand leases are one timer and a few batches', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  for (let index = 0; index < 10_000; index++) {
    await locks.acquire(`k${index}`, { ttl: 10_000 });
    if (index % 100 === 0) clock.nowMs += 33;
  }
  await settle();
  expect(clock.timers.size).toBe(1);
  await clock.advance(10_000);
  const before = store.batches;
  await clock.advance(10_000);
  expect((store.batches - before) / 10).toBeLessThan(20);
  expect(store.countOf('renew')).toBeGreaterThan(20_000);
  expect(clock.timers.size).toBe(1);
});

test('a ttl that the store does not take is refused at once, and the lease goes on with its own', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 3_000 });
  const apply = store.apply.bind(store);
  store.apply = (commands) =>
    commands.flatMap((command) =>
      command.kind === 'renew' && command.ttlMs > 10_000
        ? Promise.reject(new UnsupportedError('too long for this bucket', { key: command.key }))
        : apply([command]),
    );
  const refused = expect(lease.renew('1h')).rejects.toMatchObject({ code: 'unsupported', key: 'k' });
  await clock.advance(60_000);
  expect(lease.held).toBe(true);
  await refused;
  await lease.renew('5s');
  expect(lease.remainingMs).toBeGreaterThan(4_000);
});

test('a ttl that is refused while a renewal is on its way, too', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('k', { ttl: 3_000 });
  store.fate = (command) => (command.kind === 'renew' ? 'kept' : 'pass');
  await clock.advance(1_050);
  const apply = store.apply.bind(store);
  store.apply = (commands) =>
    commands.flatMap((command) =>
      command.kind === 'renew' && command.ttlMs > 10_000
        ? Promise.reject(new UnsupportedError('too long for this bucket'))
        : apply([command]),
    );
  const refused = expect(lease.renew('1h')).rejects.toBeInstanceOf(UnsupportedError);
  store.fate = () => 'pass';
  store.deliver();
  await clock.advance(60_000);
  expect(lease.held).toBe(true);
  await refused;
});
