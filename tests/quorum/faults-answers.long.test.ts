import { quorumStore } from 'holdfast/quorum';
import { available } from 'holdfast-test-servers';
import { describe, it } from 'vitest';
import { expectExclusion } from '../faults/bad-network.js';
import { QuorumScene } from './store-scene.js';

describe.runIf(available('redis', { own: true }))('answers of a quorum', { timeout: 60_000 }, () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 1_000_000));

  it(`F4, F5, F7, F27: lost, late and doubled at random: exclusive, with rising tokens, and nothing is left (HOLDFAST_SEED=${seed})`, async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [looking, ...stores] = Array.from({ length: 5 }, () => quorumStore(scene.connect()));
    if (!looking) throw new Error('No store.');
    const run = expectExclusion({ stores, key: 'k', seed, runMs: 3_000, ttlMs: [150, 600] }, looking);
    await run;
    await looking.close();
  });
});
