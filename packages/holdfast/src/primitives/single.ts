/** One key: a mutex, or permits of a semaphore or read-write lock. */
import type { AcquireOptions, Lease } from '../api.js';
import { type Defaults, requestOf, type Wants } from '../arguments.js';
import type { Core } from '../engine/core.js';
import type { Admission } from '../engine/ticket.js';
import { HeldLease } from '../lease.js';
import { checkWaitsForOthers } from '../work-context.js';
import type { Outcome } from './verbs.js';

/** What all primitives of one `Locks` share. */
export interface Context {
  readonly core: Core;
  readonly defaults: Defaults;
  /** Throws once the locks are closed. */
  readonly checkOpen: () => void;
}

/** Checks the call and asks the core. Two halves, so that the way of most calls has no promise too many. */
export function ask(
  context: Context,
  key: string,
  options: AcquireOptions | undefined,
  wants: Wants,
  waitMs: number,
  optionNames?: readonly string[],
): Promise<Admission> {
  const request = requestOf(key, options, wants, context.defaults, waitMs, optionNames);
  context.checkOpen();
  request.signal?.throwIfAborted();
  if (request.waitMs > 0) checkWaitsForOthers(context.core, request);
  return context.core.acquire(request);
}

export function outcomeOf(admission: Admission): Outcome<Lease> {
  switch (admission.kind) {
    case 'granted':
      return { kind: 'granted', lease: new HeldLease(admission.turn) };
    case 'busy':
      return admission;
    case 'failed':
      throw admission.error;
    case 'aborted':
      throw admission.reason;
  }
}

export async function acquireOne(
  context: Context,
  key: string,
  options: AcquireOptions | undefined,
  wants: Wants,
  waitMs: number,
  optionNames?: readonly string[],
): Promise<Outcome<Lease>> {
  return outcomeOf(await ask(context, key, options, wants, waitMs, optionNames));
}
