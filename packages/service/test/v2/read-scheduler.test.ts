import { expect, it } from 'vitest';
import { type ReadResult, ReadScheduler } from '../../src/v2/read-scheduler.js';
import { pause } from '../scene.js';

/** How long after a look of this length the next one begins. */
async function restAfter(result: ReadResult, lookMs: number): Promise<number> {
  const turns = new ReadScheduler();
  let endedMs = 0;
  turns.schedule(async () => {
    await pause(lookMs);
    endedMs = performance.now();
    return result;
  });
  return await new Promise((resolve) => {
    turns.schedule(async () => {
      resolve(performance.now() - endedMs);
      return 'answered';
    });
  });
}

it('a read that the store answered is followed by a long pause, a failed one by a short one, a first one by none', async () => {
  const [answered, failed, first] = await Promise.all([
    restAfter('answered', 1_000),
    restAfter('failed', 1_000),
    restAfter('first', 1_000),
  ]);
  expect(answered).toBeGreaterThan(3_950);
  expect(failed).toBeGreaterThan(950);
  expect(failed).toBeLessThan(3_500);
  expect(first).toBeLessThan(900);
});
