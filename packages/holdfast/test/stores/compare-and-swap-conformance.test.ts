import { describe } from 'vitest';
import { casesOf, isLongRun, sequencesOf } from '../../../../tests/long-run.js';
import { runCases } from '../../../../tests/store-talk.js';
import type { State } from '../../src/protocol/index.js';
import { WAITERS_MAX } from '../../src/stores/compare-and-swap/index.js';
import { conformanceSuite, type Harness } from '../../src/testkit/index.js';
import { type Manners, Paper, paperStore } from './paper.js';

/** Connections take turns in their manners: the first gets the first, and so on. */
function harnessOf(name: string, manners: readonly Manners[]): Harness {
  const paper = new Paper();
  let opened = 0;
  return {
    name,
    doubtMs: 2 * Math.max(...manners.map(({ errorMs = 0, lateMs = 0 }) => errorMs + lateMs)),
    lineMax: WAITERS_MAX,
    async open() {
      return paperStore(paper, manners[opened++ % manners.length]);
    },
    async forget(key) {
      paper.sheets.delete(key);
    },
    async spoil(key) {
      const state = JSON.parse(paper.sheets.get(key)?.text ?? '{}') as State;
      paper.put(key, { ...state, version: 99 }, 0);
    },
  };
}

const harnesses = [
  harnessOf('an engine that takes what is free and tells what is there', [{}]),
  harnessOf('an engine that only swaps, and does not tell', [{ takes: false, tells: false }]),
  harnessOf('a clock read from three sides, each wrong within its error', [
    { offMs: 12, errorMs: 12 },
    { offMs: -9, errorMs: 12 },
    { offMs: 0, errorMs: 3 },
  ]),
  harnessOf('an engine that stores late', [{ lateMs: 8, errorMs: 3, takes: false }]),
];

/** In a crowd others may come between the two: then the first answer is lost for good, and the model has no word for it. */
const doubling = harnessOf('an engine whose client sends twice', [
  { doubles: 0.3 },
  { doubles: 0.3, takes: false },
]);

describe.skipIf(isLongRun).concurrent('compare-and-swap on an engine whose client sends twice', () => {
  runCases(conformanceSuite(doubling).filter(({ name }) => !name.startsWith('random commands')));
});

describe.concurrent.each(harnesses)('compare-and-swap on $name', (harness) => {
  runCases(casesOf(conformanceSuite(harness, { sequences: sequencesOf(200) })));
});
