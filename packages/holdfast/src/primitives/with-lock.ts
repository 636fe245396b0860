/**
 * Work under a lease. The work runs in a context that names its leases, so that a nested call for the same key, which
 * could only wait for itself, is refused at once.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease, LeaseGroup } from '../api.js';
import { HeldLease, releaseQuietly } from '../lease/lease.js';
import type { LeaseRequest } from '../lease/lease-request.js';
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import type { Store } from '../protocol/store.js';

const leasesAbove = new AsyncLocalStorage<readonly HeldLease[]>();

/** Runs work. Work that ends after its lease was lost has failed, whatever it returned (P10). */
export async function runUnder<L extends Lease | LeaseGroup, T>(
  lease: L,
  work: (lease: L) => Promise<T> | T,
): Promise<T> {
  const leases = 'leases' in lease ? lease.leases : [lease as Lease];
  try {
    const result = await leasesAbove.run(contextOf(leases), () => work(lease));
    for (const part of leases) if (!part.held && part.state === 'lost') throw lateError(part, result);
    return result;
  } finally {
    await releaseQuietly(lease);
  }
}

/** Without leases that are over: work that starts its own successor must not keep all its predecessors. */
function contextOf(leases: readonly Lease[]): readonly HeldLease[] {
  const outer = leasesAbove.getStore()?.filter(({ state }) => state === 'held') ?? [];
  return [...outer, ...leases.filter((lease) => lease instanceof HeldLease)];
}

function lateError(lease: Lease, result: unknown): LeaseLostError {
  const message = `The work under "${lease.key}" ended after its lease (token ${lease.token}) was lost: others may have run beside it.`;
  return new LeaseLostError(message, { key: lease.key, result, cause: lease.signal.reason });
}

export function checkWork(work: unknown): void {
  if (typeof work === 'function') return;
  throw new InvalidArgumentError('The work to do under the lock has to be a function.');
}

/** Throws when the request cannot be granted before the work that makes it has ended. */
export function checkNotNested(store: Store, request: LeaseRequest): void {
  let { permits, capacity } = request;
  let own: HeldLease | undefined;
  for (const lease of leasesAbove.getStore() ?? []) {
    const above = HeldLease.requestOf(lease);
    if (above.key !== request.key || HeldLease.storeOf(lease) !== store || !lease.held) continue;
    permits += above.permits;
    capacity = Math.min(capacity, above.capacity);
    own = lease;
  }
  if (!own || permits <= capacity) return;
  throw new InvalidArgumentError(
    `"${request.name}" is held by the very work that asks for it again (token ${own.token}), so the call would wait for ` +
      'itself. Use the lease that the work was given, or ask for another key.',
    { key: request.name },
  );
}

/** Whether the caller runs under any lease. */
export const isUnderLease = (): boolean => leasesAbove.getStore() !== undefined;
