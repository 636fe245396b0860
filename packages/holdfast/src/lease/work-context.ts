/**
 * The leases that the running code works under. `withLock` runs its work in this context, so that a nested call for the
 * same key uses the same lease, or is refused, as it could only wait for itself.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease } from '../api.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import { checkKey } from '../protocol/names.js';
import type { Store } from '../protocol/store.js';
import type { Permits } from '../queue/request.js';
import { HeldLease } from './lease.js';
import type { LeaseRequest } from './lease-request.js';

/** Declared here, because the library's declarations must not need Node's types. */
interface WorkContext {
  getStore(): readonly HeldLease[] | undefined;
  run<T>(leases: readonly HeldLease[], work: () => T): T;
  exit<T>(work: () => T): T;
}

export const workContext: WorkContext = new AsyncLocalStorage<readonly HeldLease[]>();

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
    `"${request.name}" is held by the same work that asks for it again (token ${own.token}), so the call would wait for ` +
      'itself. Use the lease that the work was given, give `withLock` the option `reentrant: true`, or ask for another key.',
    { key: request.name },
  );
}

/** A flight of `getOrCreate` whose functions run. */
interface RunningFlight {
  readonly key: string;
  readonly store: Store;
  readonly isOver: boolean;
}

const flightContext = new AsyncLocalStorage<readonly RunningFlight[]>();

export function runInFlight<T>(flight: RunningFlight, run: () => T): T {
  const outer = flightContext.getStore()?.filter(({ isOver }) => !isOver) ?? [];
  return flightContext.run([...outer, flight], run);
}

/** Throws when `get` or `create` itself calls `getOrCreate` for the same key. */
export function checkNotInFlight(store: Store, { key, name }: LeaseRequest): void {
  const isSame = (flight: RunningFlight): boolean =>
    flight.key === key && flight.store === store && !flight.isOver;
  if (!flightContext.getStore()?.some(isSame)) return;
  throw new InvalidArgumentError(
    `get or create of "${name}" calls getOrCreate for the same key, so the call would wait for itself. Read or create ` +
      'the value without getOrCreate, or use another key.',
    { key: name },
  );
}

/** Returns a function that runs others as if they were called here, with the `AsyncLocalStorage` of the caller. */
export function captureContext(): <T>(run: () => T) => T {
  return AsyncLocalStorage.snapshot();
}

/** Lost leases whose work has ended. Code that the work left running, such as a timer, no longer counts as this work. */
const endedWork = new WeakSet<Lease>();

/** Notes that the work of these leases has ended. Leases that are not lost need no note: they are released now. */
export function noteWorkEnded(leases: readonly Lease[]): void {
  for (const lease of leases) if (lease.state === 'lost') endedWork.add(lease);
}

/** The lease on this key, with at least these permits, that the running code works under. Throws when it is lost. */
export function outerLease(store: Store, key: string, { permits, capacity }: Permits): HeldLease | null {
  for (const lease of workContext.getStore()?.toReversed() ?? []) {
    const above = HeldLease.requestOf(lease);
    if (above.key !== key || HeldLease.storeOf(lease) !== store) continue;
    if (isGivenUp(lease) || endedWork.has(lease)) continue;
    if (above.permits < permits || above.capacity !== capacity) continue;
    lease.assertHeld();
    return lease;
  }
  return null;
}

const isGivenUp = ({ state }: Lease): boolean => state === 'released' || state === 'handed-off';

/**
 * The lease that the running code works under: the innermost, or the innermost of this key, of any `Locks`. Undefined
 * outside of `withLock` and `tryWithLock`, and after a release. It may be lost: check `held`, or call `assertHeld()`.
 */
export function currentLease(key?: string): Lease | undefined {
  const name = key?.normalize('NFC');
  return workContext
    .getStore()
    ?.findLast((lease) => !isGivenUp(lease) && (name === undefined || lease.key === name));
}

/** For code that has to run under a lock: throws unless it does, at this moment. */
export function assertLocked(key: string): void {
  const lease = currentLease(checkKey(key));
  if (!lease) {
    throw new InvalidArgumentError(
      `This has to run under the lock "${key}": call it inside the work of withLock("${key}", …).`,
      { key },
    );
  }
  lease.assertHeld();
}
