import { available } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { redisWorld } from '../faults/redis-world.js';
import { expectExclusive, Scene } from '../faults/scene.js';

describe.runIf(available('redis')).concurrent('faults of scripts', { timeout: 60_000 }, () => {
  for (const driver of ['ioredis', 'node-redis'] as const) {
    it(`${driver}: scripts flushed over and over in the middle of work: nobody notices`, async ({
      onTestFinished,
    }) => {
      const scene = await Scene.open(redisWorld(driver, false), onTestFinished);
      const names = ['a', 'b', 'c'];
      const fleet = await Promise.all(names.map((name) => scene.contender(name, { workMs: 5 })));
      const operator = new Redis(scene.server.url);
      for (let flush = 0; flush < 60; flush++) {
        await operator.script('FLUSH');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      operator.disconnect();
      await Promise.all(fleet.map((child) => child.more(1)));
      expectExclusive(await scene.finish());
      for (const child of fleet) {
        expect(
          child.lines.filter((line) => line.startsWith('failed')),
          child.story,
        ).toEqual([]);
      }
    });
  }
});
