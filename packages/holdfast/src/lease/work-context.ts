/**
 * The leases that the running code works under. `withLock` runs its work in this context, so that a nested call for the
 * same key, which could only wait for itself, is refused at once.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { InvalidArgumentError } from '../protocol/errors.js';
import type { Store } from '../protocol/store.js';
import { HeldLease } from './lease.js';
import type { LeaseRequest } from './lease-request.js';

export const workContext = new AsyncLocalStorage<readonly HeldLease[]>();

/** Throws when the request cannot be granted before the work that makes it has ended. */
export function checkNotNested(store: Store, request: LeaseRequest): void {
  let { permits, capacity } = request;
  let own: HeldLease | undefined;
  for (const lease of workContext.getStore() ?? []) {
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
