/** What every store promises, as cases that any test runner can run, one after the other. */
import assert from 'node:assert/strict';
import type { ConformanceCase, Harness } from '../harness.js';
import { runModel } from '../model/index.js';
import { claims } from './claims.js';
import { contract } from './contract.js';
import { endings } from './endings.js';
import { hints } from './hints.js';
import { leases } from './leases.js';
import { line } from './line.js';
import { listing } from './listing.js';
import { locks } from './locks.js';
import { caseOf } from './scene.js';

export interface SuiteOptions {
  /** Of the model's random commands; drawn where not given. */
  readonly seed?: number;
  /** How many keys the model plays. 200 unless told. */
  readonly sequences?: number;
  /** How many of them at once. 250 unless told; fewer for a store that is slow under so many. */
  readonly atOnce?: number;
}

export function conformanceSuite(harness: Harness, options: SuiteOptions = {}): readonly ConformanceCase[] {
  const promises = [...contract, ...listing, ...claims, ...endings, ...line, ...hints, ...locks, ...leases];
  return [
    ...promises
      .filter((promised) => promised.applies?.(harness) ?? true)
      .map((promised) => caseOf(harness, promised)),
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
