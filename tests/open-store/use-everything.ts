import { expect } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';

/** All that a user does: takes, waits and is woken, lists, and asks what is promised. */
export async function useEverything(one: Store, two: Store): Promise<void> {
  const [first, second] = [createLocks(one), createLocks(two)];
  const lease = await first.acquire('job');
  const met = new Promise((resolve) => second.on('waiting', resolve));
  const waiting = second.acquire('job');
  await met;
  const keys: string[] = [];
  for await (const { key } of second.list()) keys.push(key);
  expect(keys).toEqual(['job']);
  await lease.release();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(lease.token);
  const { findings } = await second.probe();
  expect(findings.filter(({ text }) => /publish|listening|may not be deleted/i.test(text))).toEqual([]);
  await first.close();
  await second.close();
}
