/** One key: a mutex, or permits of a semaphore or read-write lock. */
import type { AcquireOptions, Lease, Lockable } from '../api.js';
import { type Defaults, requestOf } from '../arguments.js';
import type { HeldLease } from '../lease/lease.js';
import type { Leases } from '../lease/leases.js';
import { outerLease } from '../lease/work-context.js';
import { checkKey } from '../protocol/names.js';
import type { Permits } from '../queue/request.js';
import type { Outcome as Waited } from '../queue/waiter.js';
import { type Outcome, verbs } from './verbs.js';
import { innerLease } from './with-lock.js';

/** The parts that all primitives of one `Locks` share. */
export interface Context {
  readonly leases: Leases;
  readonly defaults: Defaults;
}

export function outcomeOf(waited: Waited<HeldLease>): Outcome<HeldLease> {
  switch (waited.kind) {
    case 'granted':
      return { kind: 'granted', lease: waited.grant };
    case 'busy':
      return waited;
    case 'failed':
      throw waited.error;
    case 'aborted':
      throw waited.reason;
    default:
      throw new Error(`Waiting ended unexpectedly: ${waited.kind}.`);
  }
}

/** The four verbs on one key, always with these permits. */
export function lockable(context: Context, key: string, permits: Permits): Lockable<Lease> {
  return verbs<Lease, AcquireOptions>(
    (options, waitMs) => acquireOne(context, key, options, permits, waitMs),
    (options) => outerOf(context, checkKey(key), options, permits),
    context.defaults.waitMs,
  );
}

/** The lease on this key that the running work holds, in the form for inner work. */
export function outerOf(
  { leases, defaults }: Context,
  key: string,
  options: AcquireOptions | undefined,
  permits: Permits,
  optionNames?: ReadonlySet<string>,
): Lease | null {
  const lease = outerLease(leases.client.store, defaults.prefix + key, permits);
  if (!lease) return null;
  // Options are checked here, too. Only the signal has an effect, because the lease is there already.
  requestOf(key, options, permits, defaults, 0, optionNames).signal?.throwIfAborted();
  return innerLease(lease);
}

export async function acquireOne(
  { leases, defaults }: Context,
  key: string,
  options: AcquireOptions | undefined,
  permits: Permits,
  waitMs: number,
  optionNames?: ReadonlySet<string>,
): Promise<Outcome<HeldLease>> {
  return outcomeOf(await leases.acquire(requestOf(key, options, permits, defaults, waitMs, optionNames)));
}
