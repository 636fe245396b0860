import type { HolderView, Snapshot, WaiterView } from 'holdfast/protocol';
import { describe, expect, it } from 'vitest';
import { lockView } from '../../src/v2/views.js';

const waiter = (owner: string): WaiterView => ({ owner, permits: 1, capacity: 1, since: 5, woken: false });

function holder(owner: string): HolderView {
  const times = { acquiredAt: 1, expiresAt: 9 };
  return { owner, permits: 1, capacity: 1, token: 1, metadata: null, resting: false, ...times };
}

function waitersOf(snapshot: Partial<Snapshot>, inStore: readonly string[], behind: readonly string[]) {
  const whole = { key: 'a/b', now: 7, token: 1, holders: [], waiters: [], ...snapshot };
  const here = { inStore: inStore.map(waiter), behind: behind.map(waiter) };
  return lockView(whole, here, 'json').waiters.map(({ owner }) => owner);
}

describe('who waits for a lock, in the store and in this process', () => {
  it('is everybody once: those in the store, then those behind them here', () => {
    const waiters = [waiter('elsewhere'), waiter('grace')];
    expect(waitersOf({ waiters }, ['grace'], ['mary'])).toEqual(['elsewhere', 'grace', 'mary']);
  });

  it('has also one who came into the queue of the store after that was read', () => {
    const holders = [holder('grace')];
    expect(waitersOf({ holders }, ['mary'], ['joan'])).toEqual(['mary', 'joan']);
    expect(waitersOf({ waiters: [waiter('mary')] }, ['mary', 'mary'], [])).toEqual(['mary', 'mary']);
  });

  it('has nobody who was granted already, though this process has not heard of it yet', () => {
    expect(waitersOf({ holders: [holder('grace')] }, ['grace'], ['mary'])).toEqual(['mary']);
  });
});
