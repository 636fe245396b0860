/** A suite that cannot fail promises nothing: every planted bug must be caught, by the case that is about it. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/protocol/index.js';
import { conformanceSuite, runModel } from '../../src/testkit/index.js';
import { plantedBugs } from './planted-bugs.js';
import { plantedHarness } from './planted-store.js';

const MODEL = { seed: 20_261, sequences: 60, steps: 40 };

function caseAbout(bug: { readonly caughtBy: RegExp }, harness: ReturnType<typeof plantedHarness>) {
  const found = conformanceSuite(harness).filter(({ name }) => bug.caughtBy.test(name));
  expect(found.map(({ name }) => name)).toHaveLength(1);
  return found[0];
}

describe('the suite on a store with nothing planted', () => {
  it('passes every case that catches a planted bug', async () => {
    const harness = plantedHarness({ decide });
    for (const bug of new Map(plantedBugs.map((one) => [String(one.caughtBy), one])).values()) {
      await caseAbout(bug, harness)?.run();
    }
  });

  it('passes the model', async () => {
    await runModel({ harness: plantedHarness({ decide }), ...MODEL });
  });
});

for (const bug of plantedBugs) {
  describe(`planted: ${bug.name}`, () => {
    it('is caught by the case about it', async () => {
      await expect(caseAbout(bug, plantedHarness(bug))?.run()).rejects.toThrow();
    });

    if (!bug.seenByModel) return;
    it('is caught by random commands', async () => {
      await expect(runModel({ harness: plantedHarness(bug), ...MODEL })).rejects.toThrow(/Replay: runModel/);
    });
  });
}
