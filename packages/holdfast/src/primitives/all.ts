/**
 * Several keys as one: all of them or none. They are acquired one after the other in the order of their names, the same
 * order everywhere, so that no two such calls ever wait for each other. Acquired leases are renewed while the call waits.
 */
import type { AcquireOptions, Lease, LeaseGroup, Lockable, ReleaseOptions } from '../api.js';
import { waitMsOf } from '../arguments.js';
import { HeldLease, releaseQuietly } from '../lease/lease.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { checkKey } from '../protocol/names.js';
import { ALONE } from '../queue/request.js';
import { acquireOne, type Context, outerOf } from './single.js';
import { type Outcome, verbs } from './verbs.js';

export function all(context: Context, keys: readonly string[]): Lockable<LeaseGroup> {
  const ordered = distinctKeys(keys).sort();
  return verbs<LeaseGroup, AcquireOptions>(
    (options, waitMs) => acquireAll(context, ordered, options, waitMs),
    (options) => outerGroup(context, ordered, options),
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
  const { clock } = context.leases.client;
  const waitMs = waitMsOf(options, defaultWaitMs);
  const untilMs = clock.monotonicMs() + waitMs;
  const leases: HeldLease[] = [];
  let complete = false;
  try {
    for (const key of keys) {
      const wait = Math.max(0, untilMs - clock.monotonicMs());
      const outcome = await acquireOne(context, key, { ...options, wait }, ALONE, waitMs);
      if (outcome.kind === 'busy') return outcome;
      leases.push(outcome.lease);
    }
    const lease = new HeldGroup(leases);
    // A lease may have been lost while the call waited for later keys.
    lease.assertHeld();
    complete = true;
    return { kind: 'granted', lease };
  } finally {
    if (!complete) await Promise.all(leases.map(HeldLease.giveBack));
  }
}

/** Null unless the running work holds all of them. */
function outerGroup(
  context: Context,
  keys: readonly string[],
  options: AcquireOptions | undefined,
): LeaseGroup | null {
  const leases = keys.flatMap((key) => outerOf(context, key, options, ALONE) ?? []);
  return leases.length === keys.length ? new HeldGroup(leases) : null;
}

/** A group is held while all of its leases are held. */
class HeldGroup implements LeaseGroup {
  readonly leases: readonly Lease[];
  #controller: AbortController | null = null;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController();
      for (const { signal } of this.leases) {
        const onLost = (): void => controller.abort(signal.reason);
        if (signal.aborted) onLost();
        else signal.addEventListener('abort', onLost, { once: true });
      }
      this.#controller = controller;
    }
    return this.#controller.signal;
  }

  get held(): boolean {
    return this.leases.every(({ held }) => held);
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  /** Releases all, even if one release fails; then throws the first failure. */
  async release(options?: ReleaseOptions): Promise<void> {
    const outcomes = await Promise.allSettled(this.leases.map((lease) => lease.release(options)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await releaseQuietly(this);
  }
}
