import { quorumStore } from 'holdfast/quorum';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe } from 'vitest';
import { harnessOf, QuorumScene, runSuite } from './store-scene.js';

describe.runIf(available('redis', { own: true }))('a quorum of three Redis servers', () => {
  let scene: QuorumScene;
  let close: () => Promise<void>;

  beforeAll(async () => {
    scene = await QuorumScene.open((clear) => {
      close = clear;
    });
  });

  afterAll(() => close?.());

  // Side by side they are so slow that waiters give way to each other.
  runSuite(
    harnessOf('quorum with ioredis', () => scene),
    1_000,
    { isSlow: true },
  );
  runSuite(
    harnessOf(
      'quorum with node-redis',
      () => scene,
      async () => quorumStore(await scene.connectNodeRedis()),
    ),
    100,
    { isSlow: true, when: 'long-run' },
  );
});
