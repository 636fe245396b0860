/** Acquires the first free one of several keys. Each is tried once, in the order given; then the call waits for all. */
import type { AcquireOptions, Lease, Lockable } from '../api.js';
import { waitMsOf } from '../arguments.js';
import { HeldLease } from '../lease/lease.js';
import { ALONE } from '../queue/request.js';
import { distinctKeys } from './all.js';
import { acquireOne, type Context, outerOf } from './single.js';
import { type Outcome, verbs } from './verbs.js';

export function any(context: Context, keys: readonly string[]): Lockable<Lease> {
  const distinct = distinctKeys(keys);
  return verbs<Lease, AcquireOptions>(
    (options, waitMs) => acquireAny(context, distinct, options, waitMs),
    (options) => outerOfAny(context, distinct, options),
    context.defaults.waitMs,
  );
}

function outerOfAny(
  context: Context,
  keys: readonly string[],
  options: AcquireOptions | undefined,
): Lease | null {
  for (const key of keys) {
    const lease = outerOf(context, key, options, ALONE);
    if (lease) return lease;
  }
  return null;
}

async function acquireAny(
  context: Context,
  keys: readonly string[],
  options: AcquireOptions | undefined,
  defaultWaitMs: number,
): Promise<Outcome<Lease>> {
  const waitMs = waitMsOf(options, defaultWaitMs);
  let outcome: Outcome<Lease> | null = null;
  for (const key of keys) {
    outcome = await acquireOne(context, key, { ...options, wait: 0 }, ALONE, 0);
    if (outcome.kind === 'granted') return outcome;
  }
  if (outcome && waitMs === 0) return { ...outcome, key: keys.join('", "') };
  // The signal may have aborted after the last answer, before this line ran.
  options?.signal?.throwIfAborted();
  return race(context, keys, { ...options, wait: waitMs });
}

/** The first grant ends the other calls. A later grant is given back. */
async function race(
  context: Context,
  keys: readonly string[],
  options: AcquireOptions,
): Promise<Outcome<Lease>> {
  const ended = new AbortController();
  const { signal } = ended;
  const onAbort = (): void => ended.abort(options.signal?.reason);
  options.signal?.addEventListener('abort', onAbort);
  let winner: Outcome<Lease> | null = null;
  const attempts = keys.map(async (key) => {
    const outcome = await acquireOne(context, key, { ...options, signal }, ALONE, 0);
    // Not awaited: the winner's lease would lose time, or end, while this release is on its way (P15).
    if (outcome.kind === 'granted' && winner) void HeldLease.giveBack(outcome.lease);
    else if (outcome.kind === 'granted') {
      winner = outcome;
      ended.abort(new Error('Another of the keys was granted.'));
    }
    return outcome;
  });
  const settled = await Promise.allSettled(attempts);
  options.signal?.removeEventListener('abort', onAbort);
  if (winner) return winner;
  for (const attempt of settled) if (attempt.status === 'rejected') throw attempt.reason;
  const [first] = settled;
  const key = keys.join('", "');
  if (first?.status === 'fulfilled' && first.value.kind === 'busy') return { ...first.value, key };
  return { kind: 'busy', key, holders: [], heldHere: false };
}
