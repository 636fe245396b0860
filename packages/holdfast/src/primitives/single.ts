/** One key: a mutex, or permits of a semaphore or read-write lock. */
import type { AcquireOptions, Lease } from '../api.js';
import { type Defaults, requestOf, type Wants } from '../arguments.js';
import type { Core } from '../engine/core.js';
import { HeldLease } from '../lease.js';
import type { Outcome } from './verbs.js';

/** What all primitives of one `Locks` share. */
export interface Context {
  readonly core: Core;
  readonly defaults: Defaults;
  /** Throws once the locks are closed. */
  readonly checkOpen: () => void;
}

export async function acquireOne(
  context: Context,
  key: string,
  options: AcquireOptions | undefined,
  wants: Wants,
  waitMs: number,
  moreOptions?: readonly string[],
): Promise<Outcome<Lease>> {
  const request = requestOf(key, options, wants, { ...context.defaults, waitMs }, moreOptions);
  context.checkOpen();
  request.signal?.throwIfAborted();
  const admission = await context.core.acquire(request);
  switch (admission.kind) {
    case 'granted':
      return { kind: 'granted', lease: new HeldLease(admission.turn) };
    case 'busy':
      return { kind: 'busy', key: request.name, holders: admission.holders };
    case 'failed':
      throw admission.error;
    case 'aborted':
      throw admission.reason;
  }
}
