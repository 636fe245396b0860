/** What the simulation has found, each in the few steps that it comes down to. */
import { expect, it } from 'vitest';
import { settle, stage, watchOf } from './stage.js';

it('F29: an eviction heard of before the answer to the claim it ended: nothing is handed over', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const operator = open().locks;
  store.fate = ({ kind }) => (kind === 'claim' ? 'kept' : 'pass');
  const first = locks.acquire('job', { ttl: 10_000 });
  const second = locks.acquire('job', { ttl: 10_000, wait: 5_000 });
  await settle();
  await operator.evict('job');
  await settle();
  store.fate = () => 'lost';
  store.deliver();
  const lease = await first;
  const next = watchOf(second);
  const release = watchOf(lease.release());
  await settle();
  expect(next.state).toBe('pending');
  await clock.advance(10_000);
  expect([next.state, release.state]).toEqual(['failed', 'done']);
});

it('F32: a waiter that could not listen is not starved by a busy process', async () => {
  const { clock, open } = stage();
  const busy = open({ owner: 'busy' });
  const deaf = open({ owner: 'deaf' });
  deaf.store.listen = () => Promise.reject(new Error('no connection left'));
  let stopped = false;
  const worker = async (): Promise<void> => {
    while (!stopped) {
      const lease = await busy.locks.acquire('job', { wait: 60_000 });
      await new Promise<void>((resolve) => clock.timer(2, resolve));
      await lease.release();
    }
  };
  const workers = [worker(), worker(), worker()];
  await clock.advance(100);
  let waitedMs = Number.POSITIVE_INFINITY;
  const sinceMs = clock.nowMs;
  const had = deaf.locks.acquire('job', { wait: 20_000 }).then(async (lease) => {
    waitedMs = clock.nowMs - sinceMs;
    await lease.release();
  });
  await clock.advance(5_000);
  stopped = true;
  await clock.advance(25_000);
  await Promise.all([had, ...workers]);
  expect(waitedMs).toBeLessThan(2_500);
});

it('P15: any() does not let the lease it won grow old while another is given back', async () => {
  const { open } = stage();
  const other = open().locks;
  const held = [await other.acquire('one'), await other.acquire('two')];
  const { locks, store } = open();
  const won = locks.any(['one', 'two']).acquire({ wait: 5_000 });
  await settle();
  store.fate = ({ kind }) => (kind === 'claim' ? 'kept' : kind === 'release' ? 'lost' : 'pass');
  await Promise.all(held.map((lease) => lease.release()));
  await settle();
  store.deliver();
  const winner = watchOf(won);
  await settle();
  expect(winner.state).toBe('done');
});
