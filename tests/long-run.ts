/**
 * What `npm run test:long` adds to tests that `npm test` runs in a small version. `NAME.long.test.ts` imports
 * `NAME.test.js`: the same tests, with the larger number or with the stores that the small version leaves out.
 */
export const isLongRun = process.env.HOLDFAST_LONG_RUN === 'yes';

/** Sequences of the conformance suite's model in `npm test`. */
const SEQUENCES = 20;

/** Sequences of the conformance suite's model: few in `npm test`, all in `npm run test:long`. */
export function sequencesOf(all: number): number {
  return isLongRun ? all : Math.min(all, SEQUENCES);
}

export type When = 'always' | 'long-run' | 'model';

/**
 * The cases of the conformance suite to run. Always: all of them in `npm test`, and only the model's, the last one, in
 * `npm run test:long`. Long run: all of them there, and none in `npm test`. Model: the model's in `npm test`, all in
 * `npm run test:long`: for a second client of a server, which the first one has shown to be right.
 */
export function casesOf<T>(cases: readonly T[], when: When = 'always'): readonly T[] {
  if (when === 'long-run') return isLongRun ? cases : [];
  if (when === 'model') return isLongRun ? cases : cases.slice(-1);
  return isLongRun ? cases.slice(-1) : cases;
}
