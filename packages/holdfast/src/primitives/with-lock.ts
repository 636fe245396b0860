/** Work under a lease. */
import type { Lease, LeaseGroup } from '../api.js';
import { HeldLease, releaseQuietly } from '../lease/lease.js';
import { workContext } from '../lease/work-context.js';
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';

/** Runs work. Work that ends after its lease was lost has failed, whatever it returned (P10). */
export async function runUnder<L extends Lease | LeaseGroup, T>(
  lease: L,
  work: (lease: L) => Promise<T> | T,
): Promise<T> {
  const leases = 'leases' in lease ? lease.leases : [lease as Lease];
  try {
    const result = await workContext.run(contextOf(leases), () => work(lease));
    for (const part of leases) if (!part.held && part.state === 'lost') throw lateError(part, result);
    return result;
  } finally {
    await releaseQuietly(lease);
  }
}

/** Without leases that are over: work that starts its own successor must not keep all its predecessors. */
function contextOf(leases: readonly Lease[]): readonly HeldLease[] {
  const outer = workContext.getStore()?.filter(({ state }) => state === 'held') ?? [];
  return [...outer, ...leases.filter((lease) => lease instanceof HeldLease)];
}

function lateError(lease: Lease, result: unknown): LeaseLostError {
  const message = `The work under "${lease.key}" ended after its lease (token ${lease.token}) was lost: others may have run beside it.`;
  const cause: unknown = lease.signal.reason;
  const reason = cause instanceof LeaseLostError ? cause.reason : undefined;
  return new LeaseLostError(message, { key: lease.key, reason, result, cause });
}

export function checkWork(work: unknown): void {
  if (typeof work === 'function') return;
  throw new InvalidArgumentError('The work to do under the lock has to be a function.');
}
