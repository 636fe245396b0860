import { expect, test } from 'vitest';
import type { Lease } from '../../src/index.js';
import { settle, stage, watchOf } from './stage.js';

test('a lease passes to the next of its process without a word to the store, with a higher token', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const first = await locks.acquire('k');
  const waiting = locks.acquire('k');
  await settle();
  const sent = store.applied.length;
  await first.release();
  const second = await waiting;
  expect(store.applied.length).toBe(sent);
  expect(second.token).toBe(first.token + 1);
  expect([first.state, second.held]).toEqual(['released', true]);
});

test('five thousand handovers never repeat or lower a token: blocks are renewed in time', async () => {
  const { open } = stage();
  const { locks } = open();
  let last = 0;
  await Promise.all(
    Array.from({ length: 5_000 }, () =>
      locks.withLock('k', ({ token }) => {
        expect(token).toBeGreaterThan(last);
        last = token;
      }),
    ),
  );
});

test.each([0, 1])(
  'F5: a listener that is told of an abort, and releases, passes the lock to nobody who has gone; %i others wait',
  async (others) => {
    const { clock, open } = stage();
    const { locks } = open();
    const held = await locks.acquire('k');
    const aborting = new AbortController();
    const gone = watchOf(locks.acquire('k', { signal: aborting.signal, wait: '1h' }));
    const waiting = Array.from({ length: others }, () => watchOf(locks.acquire('k', { wait: '1h' })));
    await settle();
    locks.on('not-acquired', () => void held.release());
    aborting.abort(new Error('given up'));
    await settle();
    expect(gone.error).toEqual(new Error('given up'));
    const leases = waiting.flatMap(({ value }) => value ?? []);
    expect(leases).toHaveLength(others);
    expect(locks.leases()).toEqual(leases);
    for (const lease of leases) await lease.release();
    await clock.advance(1_000);
    expect(await locks.inspect('k')).toBeNull();
  },
);

test('F29: nothing is handed over after the deadline, also when no timer has run yet', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const first = await a.locks.acquire('k', { ttl: 1_000 });
  const waiting = watchOf(a.locks.acquire('k', { ttl: 1_000, wait: '1h' }));
  await settle();
  clock.pause(1_001);
  const other = await b.locks.acquire('k', { ttl: 60_000 });
  await first.release();
  await clock.advance(100);
  expect([first.state, waiting.state, other.held]).toEqual(['lost', 'pending', true]);
});

test('F29: after an eviction was heard of, nothing is handed over until a later renewal has answered', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const first = await a.locks.acquire('k', { ttl: 60_000 });
  const waiting = watchOf(a.locks.acquire('k', { ttl: 60_000, wait: '1h' }));
  await settle();
  a.store.fate = (command) => (command.kind === 'renew' ? 'kept' : 'pass');
  expect(await b.locks.evict('k')).toBe(1);
  await settle();
  const other = await b.locks.acquire('k', { ttl: 60_000 });
  await first.release();
  await settle();
  expect(waiting.state).toBe('pending');
  a.store.fate = () => 'pass';
  a.store.deliver();
  await clock.advance(1_000);
  expect([waiting.state, other.held]).toEqual(['pending', true]);
});

test('F29: in jeopardy, or with less than half of the ttl left, it is renewed first', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const first = await locks.acquire('k', { ttl: 3_000 });
  const waiting = watchOf(locks.acquire('k', { ttl: 3_000, wait: '1h' }));
  store.fate = (command) => (command.kind === 'renew' ? 'rejected' : 'pass');
  await clock.advance(1_600);
  await first.release();
  await clock.advance(10);
  expect(waiting.state).toBe('pending');
  store.fate = () => 'pass';
  await clock.advance(1_000);
  expect(waiting.state).toBe('done');
  expect(waiting.value?.remainingMs).toBeGreaterThan(1_500);
});

test('only like goes to like', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const unlike: Parameters<typeof locks.acquire>[1][] = [
    { ttl: 5_000 },
    { owner: 'somebody' },
    { metadata: { job: 1 } },
    { minHold: 10 },
    { renew: false },
  ];
  for (const options of unlike) {
    const first = await locks.acquire('k');
    const waiting = locks.acquire('k', { ...options, wait: '1h' });
    await clock.advance(10);
    const claims = store.countOf('claim');
    expect(claims).toBeGreaterThan(1);
    await first.release();
    await clock.advance(1_000);
    await (await waiting).release();
    await clock.advance(1_000);
  }
  const stretched = await locks.acquire('k');
  await stretched.renew('1h');
  const waiting = locks.acquire('k', { wait: '1h' });
  await settle();
  await stretched.release();
  await clock.advance(1_000);
  expect((await waiting).remainingMs).toBeLessThan(30_000);
});

test('F19: whoever comes to the front in a handover, and is not like it, gets its place in the store before later callers', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  const first = await a.locks.acquire('k');
  const second = a.locks.acquire('k');
  const unlike = watchOf(a.locks.acquire('k', { ttl: '1m', wait: '1h' }));
  await settle();
  await first.release();
  await clock.advance(1_000);
  const later = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(1_000);
  const waiters = (await b.locks.inspect('k'))?.waiters.map(({ owner }) => owner);
  expect(waiters).toEqual(['a', 'b']);
  await (await second).release();
  await clock.advance(1_000);
  expect([unlike.state, later.state]).toEqual(['done', 'pending']);
});

test('others get their turn: with a foreign waiter, the process gives the key up after its share', async () => {
  const { clock, open } = stage();
  const busy = open({ owner: 'busy' });
  const other = open({ owner: 'other' });
  let lease: Lease | null = await busy.locks.acquire('k');
  let turns = 0;
  const next = async (): Promise<void> => {
    for (let round = 0; round < 200; round++) {
      const waiting = busy.locks.acquire('k', { wait: '1h' });
      await lease?.release();
      lease = await waiting;
      turns += 1;
      await new Promise<void>((resolve) => clock.timer(1, resolve));
    }
  };
  const loop = watchOf(next());
  const waiting = watchOf(other.locks.acquire('k', { wait: '1h' }));
  await clock.advance(60);
  expect(waiting.state).toBe('done');
  expect(turns).toBeLessThan(50);
  await waiting.value?.release();
  await clock.advance(5_000);
  expect(loop.state).toBe('done');
});

test('F32: a process that gets no wake-ups hands over for 50 ms and no longer', async () => {
  const { clock, open } = stage();
  const busy = open();
  busy.store.listen = () => Promise.reject(new Error('deaf'));
  const other = open();
  const work = (): Promise<void> => new Promise((resolve) => clock.timer(5, resolve));
  const loop = watchOf(
    Promise.all(Array.from({ length: 100 }, () => busy.locks.withLock('k', work, { wait: '1h' }))),
  );
  await clock.advance(10);
  const waiting = watchOf(other.locks.acquire('k', { wait: '1h' }));
  await clock.advance(300);
  expect(waiting.state).toBe('done');
  await waiting.value?.release();
  await clock.advance(10_000);
  expect(loop.state).toBe('done');
});

test('without queue or push a process hands over for 50 ms and then stays away for 150 ms', async () => {
  const { clock, open } = stage();
  const { locks, store } = open({}, { queue: false, push: false });
  const releases: number[] = [];
  const claims: number[] = [];
  store.fate = (command) => {
    if (command.kind === 'release') releases.push(clock.nowMs);
    if (command.kind === 'claim') claims.push(clock.nowMs);
    return 'pass';
  };
  const work = () => new Promise<void>((resolve) => clock.timer(5, resolve));
  const all = Promise.all(Array.from({ length: 40 }, () => locks.withLock('k', work, { wait: '1h' })));
  await clock.advance(5_000);
  await all;
  const [firstRelease = 0] = releases;
  const [firstClaim = 0, secondClaim = 0] = claims;
  expect(firstRelease - firstClaim).toBeGreaterThanOrEqual(50);
  expect(firstRelease - firstClaim).toBeLessThan(60);
  expect(secondClaim - firstRelease).toBeGreaterThanOrEqual(150);
});
