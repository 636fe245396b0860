/** Processes of Holdfast, opened by URL, that are killed, or whose clock is wrong. */
import { expect, it, type TestContext } from 'vitest';
import { Child } from '../faults/child.js';
import { type Fleet, freshName, pause, until } from './fleet.js';

const HOLDER = new URL('./holder.js', import.meta.url);
const HOUR_MS = 3_600_000;
const TTL_MS = 4_000;

function holderOf({ onTestFinished }: TestContext, fleet: Fleet, name: string, clockOffMs = 0): Child {
  const ttlMs = fleet.holderTtlMs ?? TTL_MS;
  const child = new Child('holder', HOLDER, [fleet.url, name, String(ttlMs)], clockOffMs);
  onTestFinished(async () => {
    await child.kill();
  });
  return child;
}

export function processCases(open: () => Fleet): void {
  it.concurrent('F21: the other software takes over from a killed process of Holdfast, and not while it lives', async (test) => {
    const fleet = open();
    const name = freshName();
    const theirs = fleet.foreign();
    const take = async () => (await theirs.acquire(name, 'their-worker', 30_000)) !== null;
    const holder = holderOf(test, fleet, name);
    await holder.said('held');
    const ttlMs = fleet.holderTtlMs ?? TTL_MS;
    for (let look = 0; look < 10; look++) {
      await pause(ttlMs / 8);
      expect(await take(), holder.story).toBe(false);
    }
    await holder.kill();
    await until('taken over', take, ttlMs + fleet.afterOursMs + 60_000);
  });

  it.concurrent.for([HOUR_MS, -HOUR_MS])(
    'F11: a process of Holdfast whose clock is off by %i ms locks like the others',
    async (off, test) => {
      const fleet = open();
      const name = freshName();
      const taken = freshName();
      const theirs = await fleet.foreign().acquire(taken, 'their-worker', 30_000);
      const late = holderOf(test, fleet, taken, off);
      await late.said('busy');
      expect(late.saying('held')).toEqual([]);
      expect(await theirs?.release()).toBe(true);
      await late.said('held');
      const holder = holderOf(test, fleet, name, off);
      await holder.said('held');
      for (let look = 0; look < 5; look++) {
        await pause(500);
        expect(await fleet.foreign().acquire(name, 'their-worker', 30_000), holder.story).toBeNull();
      }
      expect(holder.saying('lost')).toEqual([]);
      expect(await holder.finish()).toBe(0);
      expect(await fleet.foreign().acquire(name, 'their-worker', 30_000)).not.toBeNull();
    },
  );
}
