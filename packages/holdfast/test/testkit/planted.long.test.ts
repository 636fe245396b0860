/** A suite that cannot fail promises nothing: every planted bug must be caught, by the case that is about it. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/protocol/index.js';
import { type ConformanceCase, conformanceSuite, type Harness, runModel } from '../../src/testkit/index.js';
import { plantedBugs } from './planted-bugs.js';
import { plantedHarness } from './planted-store.js';

const MODEL = { seed: 20_261, sequences: 60, steps: 40 };
/** Ends with the first that shows the bug. Sequences depend on real time a little, so the first one differs. */
const SEARCH = { ...MODEL, sequences: 600 };
const SEARCH_MS_MAX = 120_000;

function caseAbout(about: RegExp, harness: Harness): ConformanceCase | undefined {
  const found = conformanceSuite(harness).filter(({ name }) => about.test(name));
  expect(found.map(({ name }) => name)).toHaveLength(1);
  return found[0];
}

describe('the suite on a store with nothing planted', () => {
  it('passes every case that catches a planted bug', async () => {
    const harness = plantedHarness({ decide });
    const cases = plantedBugs.flatMap(({ caughtBy, caughtByUsers }) =>
      [caughtBy, caughtByUsers ?? []].flat(),
    );
    for (const about of new Map(cases.map((one) => [one.source, one])).values()) {
      await caseAbout(about, harness)?.run();
    }
  });

  it('passes the model', async () => {
    await runModel({ harness: plantedHarness({ decide }), ...MODEL });
  });
});

describe('a planted bug is caught by the case about it', () => {
  for (const bug of plantedBugs) {
    it.concurrent(bug.name, async () => {
      await expect(caseAbout(bug.caughtBy, plantedHarness(bug))?.run()).rejects.toThrow();
    });

    const { caughtByUsers } = bug;
    if (!caughtByUsers) continue;
    it.concurrent(`${bug.name}, through the real engine`, async () => {
      await expect(caseAbout(caughtByUsers, plantedHarness(bug))?.run()).rejects.toThrow();
    });
  }
});

// Apart from the cases above, which go by the time: these keep the event loop busy.
describe('a planted bug is caught by random commands', () => {
  it.concurrent.each(
    plantedBugs.filter(({ seenByModel }) => seenByModel).map((bug) => [bug.name, bug] as const),
  )('%s', { timeout: SEARCH_MS_MAX }, async (_name, bug) => {
    await expect(runModel({ harness: plantedHarness(bug), ...SEARCH })).rejects.toThrow(/Replay: runModel/);
  });
});
