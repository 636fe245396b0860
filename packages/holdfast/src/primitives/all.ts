/**
 * Several keys as one: all of them or none. They are taken one after the other in the order of their names, the same
 * for everybody, so that no two such calls ever wait for each other; while waiting for a later one, the earlier are
 * kept and renewed.
 */
import type { AcquireOptions, Lease, LeaseGroup, Lockable } from '../api.js';
import { ALONE, checkKey, checkOptions, durationMs, OPTION_NAMES } from '../arguments.js';
import { HeldGroup } from '../lease.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { acquireOne, type Context } from './single.js';
import { type Outcome, verbs } from './verbs.js';

export function all(context: Context, keys: readonly string[]): Lockable<LeaseGroup> {
  const ordered = distinctKeys(keys).sort();
  return verbs<LeaseGroup, AcquireOptions>(
    (options, waitMs) => acquireAll(context, ordered, options, waitMs),
    context.defaults.waitMs,
  );
}

export function distinctKeys(keys: readonly string[]): string[] {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new InvalidArgumentError('The keys have to be a list with at least one name.');
  }
  return [...new Set(keys.map(checkKey))];
}

async function acquireAll(
  context: Context,
  keys: readonly string[],
  options: AcquireOptions | undefined,
  defaultWaitMs: number,
): Promise<Outcome<LeaseGroup>> {
  const { clock } = context.core;
  if (options !== undefined) checkOptions(options, OPTION_NAMES);
  const waitMs = durationMs(options?.wait ?? defaultWaitMs, 'wait', 0, Number.POSITIVE_INFINITY);
  const untilMs = clock.monotonicMs() + waitMs;
  const leases: Lease[] = [];
  let complete = false;
  try {
    for (const key of keys) {
      const wait = Math.max(0, untilMs - clock.monotonicMs());
      const outcome = await acquireOne(context, key, { ...options, wait }, ALONE, waitMs);
      if (outcome.kind === 'busy') return outcome;
      leases.push(outcome.lease);
    }
    const lease = new HeldGroup(leases);
    // One may have been lost while the later ones were waited for.
    lease.assertHeld();
    complete = true;
    return { kind: 'granted', lease };
  } finally {
    if (!complete) await new HeldGroup(leases)[Symbol.asyncDispose]();
  }
}
