import { expect, it } from 'vitest';
import { ReadScheduler } from '../../src/v2/read-scheduler.js';
import { pause } from '../scene.js';

/** How long after a look of this length the next one begins. */
async function restAfter(isAnswered: boolean, lookMs: number): Promise<number> {
  const turns = new ReadScheduler();
  let endedMs = 0;
  turns.schedule(async () => {
    await pause(lookMs);
    endedMs = performance.now();
    return isAnswered;
  });
  return await new Promise((resolve) => {
    turns.schedule(async () => {
      resolve(performance.now() - endedMs);
      return true;
    });
  });
}

it('a look that the store answered is followed by a long rest, one in vain by a short one', async () => {
  const [answered, vain] = await Promise.all([restAfter(true, 2_000), restAfter(false, 2_000)]);
  expect(answered).toBeGreaterThan(7_900);
  expect(vain).toBeLessThan(6_000);
});
