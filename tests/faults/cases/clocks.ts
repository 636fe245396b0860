/** Clients whose clocks are wrong: no decision is made by them. */
import { describe, expect, it } from 'vitest';
import { crowdings } from '../journal.js';
import { expectExclusive, Scene } from '../scene.js';
import type { World } from '../world.js';

const HOUR_MS = 3_600_000;
const CLOCKS_OFF_MS = { right: 0, fast: HOUR_MS, slow: -HOUR_MS } as const;

async function fleetOn(scene: Scene, capacity: number, workMs: number) {
  return await Promise.all(
    Object.entries(CLOCKS_OFF_MS).map(([name, clockOffMs]) =>
      scene.contender(name, { capacity, workMs, ttlMs: 1_000, clockOffMs }),
    ),
  );
}

export function clockFaults(world: World): void {
  describe.concurrent(`${world.name}: clients whose clocks are an hour off, each way`, {
    timeout: 60_000,
  }, () => {
    it('F11: exclude each other like all others, and nobody starves', async ({ onTestFinished }) => {
      const scene = await Scene.open(world, onTestFinished);
      const fleet = await fleetOn(scene, 1, 20);
      const hours = fleet.map(
        ({ lines }) => (new Date(lines[0]?.split(' ')[2] ?? '').getTime() - Date.now()) / HOUR_MS,
      );
      expect(
        hours.map((hour) => Math.round(hour) + 0),
        'how far they are off',
      ).toEqual([0, 1, -1]);
      await Promise.all(fleet.map((child) => child.more(10)));
      expectExclusive(await scene.finish());
    });

    it('P17: steal no permit of a semaphore', async ({ onTestFinished }) => {
      const scene = await Scene.open(world, onTestFinished);
      const fleet = await fleetOn(scene, 2, 60);
      await Promise.all(fleet.map((child) => child.more(8)));
      const turns = await scene.finish();
      expect(crowdings(turns, 2)).toEqual([]);
      // Two did work at once: the permits were in use.
      expect(crowdings(turns, 1)).not.toEqual([]);
    });

    it('P17: a lease of a right clock outlives its ttl by renewals, whatever the clocks of others say', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.open(world, onTestFinished);
      const locks = await scene.locks({ ttlMs: 1_000 });
      const lease = await locks.semaphore('k', { capacity: 1 }).acquire();
      const fast = await scene.contender('fast', { key: 'k', ttlMs: 1_000, clockOffMs: HOUR_MS });
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      lease.assertHeld();
      expect(fast.turns, fast.story).toEqual([]);
      await lease.release();
      await fast.more(1);
      await scene.finish();
    });
  });
}
