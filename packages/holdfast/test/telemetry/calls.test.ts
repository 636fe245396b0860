/** The events of one call have one number, and end once. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import type { LockEventName, Locks } from '../../src/index.js';
import { stage, watchOf } from '../engine/stage.js';
import { useEverything } from './scene.js';

const OF_CALLS = ['acquiring', 'waiting', 'acquired', 'not-acquired'] as const;

/** The names of the events of each call, in order. */
function watchCalls(locks: Locks): { readonly calls: Map<number, LockEventName[]>; stop(): void } {
  const calls = new Map<number, LockEventName[]>();
  const stops = OF_CALLS.map((name) =>
    locks.on(name, ({ call }) => calls.set(call, [...(calls.get(call) ?? []), name])),
  );
  const stop = (): void => {
    for (const each of stops) each();
  };
  return { calls, stop };
}

test('every call begins once, waits at most once, and ends once', async () => {
  let watched = new Map<number, LockEventName[]>();
  await useEverything((locks) => {
    const { calls, stop } = watchCalls(locks);
    watched = calls;
    return stop;
  });
  const all = [...watched.values()].map((names) => names.join(' '));
  expect(all).toHaveLength(11);
  for (const names of all) expect(names).toMatch(/^acquiring (?:waiting )?(?:acquired|not-acquired)$/);
  expect(all.filter((names) => names.includes('waiting'))).toHaveLength(3);
});

test('a call is told of in the async context of its caller', async () => {
  const { locks } = stage().open();
  const caller = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  locks.on('acquiring', ({ key }) => seen.push([key, caller.getStore()]));
  await Promise.all(['a', 'b'].map((name) => caller.run(name, () => locks.withLock(`key ${name}`, () => 1))));
  await caller.run('c', () => locks.all(['x', 'y']).withLock(() => 1));
  expect(seen).toEqual([
    ['key a', 'a'],
    ['key b', 'b'],
    ['x', 'c'],
    ['y', 'c'],
  ]);
});

test('callers of one moment wait for the first of them, and are told so', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const { calls } = watchCalls(locks);
  store.fate = ({ kind }) => (kind === 'claim' ? 'kept' : 'pass');
  const leases = [1, 2, 3].map(() => locks.acquire('k', { wait: '1m' }));
  const tried = watchOf(locks.tryAcquire('k'));
  await clock.advance(10);
  store.deliver();
  await clock.advance(10);
  expect([...calls.values()].map((names) => names.join(' '))).toEqual([
    'acquiring acquired',
    'acquiring waiting',
    'acquiring waiting',
    'acquiring not-acquired',
  ]);
  expect(tried.value).toBeNull();
  for (const lease of leases) await (await lease).release();
  expect([...calls.values()].map((names) => names.at(-1))).toEqual([
    'acquired',
    'acquired',
    'acquired',
    'not-acquired',
  ]);
});
