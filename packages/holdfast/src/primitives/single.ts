/** One key: a mutex, or permits of a semaphore or read-write lock. */
import type { AcquireOptions, Lease } from '../api.js';
import { type Defaults, requestOf } from '../arguments.js';
import type { HeldLease } from '../lease/lease.js';
import type { Leases } from '../lease/leases.js';
import { InvalidArgumentError } from '../protocol/errors.js';
import type { Permits } from '../queue/request.js';
import type { Outcome as Waited } from '../queue/waiter.js';
import type { Outcome } from './verbs.js';
import { checkNotNested, isUnderLease } from './with-lock.js';

/** What all primitives of one `Locks` share. */
export interface Context {
  readonly leases: Leases;
  readonly defaults: Defaults;
  isClosed: boolean;
}

export function checkOpen({ isClosed }: Context): void {
  if (isClosed) throw closedError();
}

export function closedError(): InvalidArgumentError {
  return new InvalidArgumentError('These locks are closed. Make new ones with createLocks.');
}

/** Checks the call and waits. Apart from `outcomeOf`, so that most calls make no promise too many. */
export function ask(
  context: Context,
  key: string,
  options: AcquireOptions | undefined,
  permits: Permits,
  waitMs: number,
  optionNames?: ReadonlySet<string>,
): Promise<Waited<HeldLease>> {
  const request = requestOf(key, options, permits, context.defaults, waitMs, optionNames);
  if (context.isClosed) throw closedError();
  request.signal?.throwIfAborted();
  if (request.waitMs > 0 && isUnderLease()) checkNotNested(context.leases.client.store, request);
  return context.leases.acquire(request);
}

export function outcomeOf(waited: Waited<HeldLease>): Outcome<Lease> {
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
      throw closedError();
  }
}

export async function acquireOne(
  context: Context,
  key: string,
  options: AcquireOptions | undefined,
  permits: Permits,
  waitMs: number,
  optionNames?: ReadonlySet<string>,
): Promise<Outcome<Lease>> {
  return outcomeOf(await ask(context, key, options, permits, waitMs, optionNames));
}
