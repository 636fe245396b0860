/** The conformance suite: cases for every store, which any test runner can run one after the other. */
import assert from 'node:assert/strict';
import type { ConformanceCase, Harness } from '../harness.js';
import { runModel } from '../model/index.js';
import { caseOf } from './case-context.js';
import { claims } from './claims.js';
import { contract } from './contract.js';
import { evictions } from './evictions.js';
import { leases } from './leases.js';
import { listing } from './listing.js';
import { locks } from './locks.js';
import { queue } from './queue.js';
import { renewReleaseEvict } from './renew-release-evict.js';
import { wakeUps } from './wake-ups.js';

/** Options of `conformanceSuite`. */
export interface SuiteOptions {
  /** The seed of the model's random commands. Default: random. */
  readonly seed?: number;
  /** How many keys the model runs. Default 200. */
  readonly sequences?: number;
  /** How many of them at once. Default 250; fewer for a slow store. */
  readonly atOnce?: number;
}

/** The cases that every store has to pass, for any test runner. */
export function conformanceSuite(harness: Harness, options: SuiteOptions = {}): readonly ConformanceCase[] {
  const definitions = [
    ...contract,
    ...listing,
    ...claims,
    ...renewReleaseEvict,
    ...evictions,
    ...queue,
    ...wakeUps,
    ...locks,
    ...leases,
  ];
  return [
    ...definitions
      .filter(({ shared = false }) => !(shared && harness.exclusive))
      .filter((definition) => definition.applies?.(harness) ?? true)
      .map((definition) => caseOf(harness, definition)),
    {
      name: 'random commands, in turn and in a crowd, are answered as decide answers them',
      async run() {
        const report = await runModel({ harness, ...options });
        const share = report.interesting / report.steps;
        assert.ok(
          share >= 0.25,
          `only ${Math.round(share * 100)} % of the steps met an end: ${JSON.stringify(report)}`,
        );
      },
    },
  ];
}
