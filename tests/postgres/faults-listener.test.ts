import { available } from 'holdfast-test-servers';
import { afterAll, describe, it } from 'vitest';
import { postgresWorld } from '../faults/postgres-world.js';
import { eventually, Scene } from '../faults/scene.js';

const WORLD = postgresWorld('pg');

describe.runIf(available('postgres')).concurrent('faults of listening', { timeout: 60_000 }, () => {
  afterAll(() => WORLD.close());

  it('a listening connection that is never made disturbs nobody, and keeps no process alive', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(WORLD, onTestFinished);
    const proxy = await scene.proxy();
    proxy.hang();
    const child = await scene.contender('deaf', { hintsVia: proxy });
    await child.more(3);
    await scene.finish();
  });

  it('a listening connection that was lost and hangs when it is made again keeps no process alive', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(WORLD, onTestFinished);
    const proxy = await scene.proxy();
    const child = await scene.contender('deafened', { hintsVia: proxy });
    await child.more(3);
    proxy.cut();
    proxy.hang();
    await eventually(
      async () => proxy.connections,
      (connections) => connections > 0,
    );
    await child.more(3);
    await scene.finish();
  });
});
