/** Everything that can happen to calls and leases, once each, in simulated time: for comparing what was counted. */
import { expect } from 'vitest';
import type { Locks } from '../../src/index.js';
import { stage, watchOf } from '../engine/stage.js';

/** Calls by their outcome, and leases by their end, that `useEverything` brings about. */
export const OUTCOMES = { acquired: 7, refused: 1, 'timed-out': 1, failed: 1, aborted: 1 } as const;
export const ENDS = { released: 4, lost: 2, 'handed-off': 1 } as const;
export const REASONS = { deadline: 1, evicted: 1 } as const;
/** Calls that found the lock held: those that waited, and the one that was refused. */
export const CONTENDED = 4;

/** Attaches telemetry before anything happens. Returns what detaches it, with one lease still held. */
export async function useEverything(attach: (locks: Locks) => () => void): Promise<() => void> {
  const { clock, open } = stage();
  const { locks, store } = open({ owner: 'here' });
  const other = open({ owner: 'there' }).locks;
  const detach = attach(locks);

  const free = await locks.acquire('free');
  expect(await locks.tryAcquire('free')).toBeNull();
  await free.release();

  const theirs = await other.acquire('theirs');
  const late = watchOf(locks.acquire('theirs', { wait: 100 }));
  await clock.advance(500);
  expect(late.state).toBe('failed');
  const leaving = new AbortController();
  const left = watchOf(locks.acquire('theirs', { signal: leaving.signal }));
  await clock.advance(500);
  leaving.abort(new Error('left'));
  await clock.advance(10);
  expect(left.state).toBe('failed');
  const waiting = locks.acquire('theirs');
  await clock.advance(500);
  await theirs.release();
  await clock.advance(10);
  await (await waiting).release();

  store.fate = () => 'rejected';
  const down = watchOf(locks.acquire('down', { wait: 100 }));
  await clock.advance(10_000);
  expect(down.state).toBe('failed');
  store.fate = () => 'pass';

  const long = await locks.acquire('long', { ttl: '3s' });
  await clock.advance(1_500);
  store.fate = ({ kind }) => (kind === 'renew' ? 'lost' : 'pass');
  await clock.advance(10_000);
  expect(long.state).toBe('lost');
  store.fate = () => 'pass';

  const evicted = await locks.acquire('evicted');
  await other.evict('evicted');
  await clock.advance(20_000);
  expect(evicted.state).toBe('lost');

  const passed = await locks.acquire('passed');
  const adopted = await locks.adopt(await passed.handoff());
  await adopted.release();
  await (await locks.acquire('again')).release();
  await locks.acquire('still held');
  return detach;
}
