/** Short ways to say a command to a store, and the suite that every store passes. */
import type { Claim, Command, Release, Renew, Reply, Store } from 'holdfast/protocol';
import { type ConformanceCase, conformanceSuite, type Harness } from 'holdfast/testkit';
import { describe, it } from 'vitest';
import { casesOf, isLongRun, sequencesOf, type When } from './long-run.js';

const CASE_MS_MAX = 300_000;

interface SuiteOptions {
  readonly when?: When;
  /** Runs the cases one after the other, and fewer sequences of the model at once. */
  readonly isSlow?: boolean;
  /** Sequences of the model at once. */
  readonly atOnce?: number;
}

/**
 * The cases of the suite side by side, the longest first: most of their time is waiting, and none shares a key with
 * another. With all its sequences the model keeps the store busy, and runs alone; on a slow store every case does.
 */
export function runCases(cases: readonly ConformanceCase[], { isSlow = false }: SuiteOptions = {}): void {
  const isModel = ({ name }: ConformanceCase): boolean => name.startsWith('random commands');
  const longestFirst = [...cases.filter(isModel), ...cases.filter((one) => !isModel(one))];
  for (const one of isSlow ? cases : longestFirst) {
    const isAlone = isSlow || (isLongRun && isModel(one));
    (isAlone ? it.sequential : it.concurrent)(one.name, () => one.run(), CASE_MS_MAX);
  }
}

/** Every promise of a store, with the seed of its random part in the title. */
export function runSuite(harness: Harness, sequences: number, options: SuiteOptions = {}): void {
  if (options.when === 'long-run' && !isLongRun) return;
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  describe(`${harness.name} (HOLDFAST_SEED=${seed})`, () => {
    const cases = conformanceSuite(harness, {
      seed,
      sequences: sequencesOf(sequences),
      ...(options.isSlow && { atOnce: 60 }),
      ...(options.atOnce !== undefined && { atOnce: options.atOnce }),
    });
    runCases(casesOf(cases, options.when), options);
  });
}

export function claimOf(key: string, process: string, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key,
    hold: { process, number: 1 },
    owner: process,
    permits: 1,
    capacity: 1,
    ttlMs: 10_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export function renewOf({ key, hold, ttlMs }: Claim): Renew {
  return { kind: 'renew', key, hold, ttlMs, block: false };
}

export function releaseOf({ key, hold }: Claim): Release {
  return { kind: 'release', key, hold, minHoldMs: 0 };
}

export async function say(store: Store, command: Command): Promise<Reply> {
  const [reply] = await Promise.all(store.apply([command]));
  if (!reply) throw new Error('No reply.');
  return reply;
}
