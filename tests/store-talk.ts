/** Short ways to say a command to a store, and the suite that every store passes. */
import type { Claim, Command, Release, Renew, Reply, Store } from 'holdfast/protocol';
import { conformanceSuite, type Harness } from 'holdfast/testkit';
import { describe, it } from 'vitest';
import { casesOf, sequencesOf, type When } from './long-run.js';

const CASE_MS_MAX = 300_000;

/** Every promise of a store, with the seed of its random part in the title. */
export function runSuite(harness: Harness, sequences: number, when: When = 'always'): void {
  const seed = Math.floor(Math.random() * 2 ** 31);
  describe(`${harness.name} (seed ${seed})`, () => {
    const cases = conformanceSuite(harness, { sequences: sequencesOf(sequences), seed });
    for (const { name, run } of casesOf(cases, when)) it(name, run, CASE_MS_MAX);
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

const TRIES_MAX = 20;

/**
 * A store in a crowd may give up on a command and say so: nothing was done, and the core asks again. So does this, for
 * commands that are said alone.
 */
export function patient(store: Store, gaveUp: (error: unknown) => boolean): Store {
  const insist = async (command: Command, tries = 1): Promise<Reply> => {
    try {
      return await say(store, command);
    } catch (error) {
      if (tries >= TRIES_MAX || !gaveUp(error)) throw error;
      return await insist(command, tries + 1);
    }
  };
  return {
    ...store,
    apply: (commands) =>
      commands.length === 1 ? commands.map((command) => insist(command)) : store.apply(commands),
  };
}
