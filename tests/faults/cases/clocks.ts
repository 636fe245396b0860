/** Clients whose clocks are wrong: no decision is made by them. */
import { afterAll, describe, expect, it } from 'vitest';
import { crowdings } from '../journal.js';
import { expectExclusive, later, Scene } from '../scene.js';
import { workUnder } from '../turns.js';
import type { World } from '../world.js';

const HOUR_MS = 3_600_000;
/** On a busy machine, with a store that keeps no line. */
const TURNS_MS_MAX = 45_000;
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
    timeout: 90_000,
  }, () => {
    afterAll(() => world.close());

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
      await Promise.all(fleet.map((child) => child.more(6, TURNS_MS_MAX)));
      expectExclusive(await scene.finish());
    });

    it.skipIf(world.exclusive)('P17: steal no permit of a semaphore', async ({ onTestFinished }) => {
      const scene = await Scene.open(world, onTestFinished);
      const fleet = await fleetOn(scene, 2, 150);
      await Promise.all(fleet.map((child) => child.more(6, TURNS_MS_MAX)));
      const turns = await scene.finish();
      expect(crowdings(turns, 2)).toEqual([]);
      // Two did work at once: the permits were in use.
      expect(crowdings(turns, 1)).not.toEqual([]);
    });

    it('P17: take nothing from one that renews, however long it has held', async ({ onTestFinished }) => {
      const scene = await Scene.open(world, onTestFinished);
      const locks = await scene.locks({ ttlMs: 1_000 });
      const lease = await locks.semaphore('contended', { capacity: 1 }).acquire();
      const working = later(workUnder('right', lease, 3_000));
      const fleet = await fleetOn(scene, 1, 20);
      const held = await working;
      await lease.release();
      await Promise.all(fleet.map((child) => child.more(1, TURNS_MS_MAX)));
      expectExclusive([...(held ? [held] : []), ...(await scene.finish())]);
    });
  });
}
