/** The four verbs, made from one attempt: a mutex, a semaphore and a group differ only in that. */
import type { AcquireOptions, Lease, LeaseGroup, Lockable } from '../api.js';
import type { HolderView } from '../protocol/commands.js';
import { AcquireTimeoutError } from '../protocol/errors.js';
import { holderInfo } from '../protocol/view.js';
import { checkWork, runInside, runUnder, splitOptions } from './with-lock.js';

export interface Busy {
  readonly kind: 'busy';
  readonly key: string;
  readonly holders: readonly HolderView[];
  /** Another lease of this process holds the key. */
  readonly heldHere: boolean;
}

export type Outcome<L> = { readonly kind: 'granted'; readonly lease: L } | Busy;

/** One try with these options. `waitMs`: the default of the option `wait`. */
export type Attempt<L, O> = (options: O | undefined, waitMs: number) => Promise<Outcome<L>>;

/** `outer`: the lease for these options that the running work holds already. */
export function verbs<L extends Lease | LeaseGroup, O extends AcquireOptions>(
  attempt: Attempt<L, O>,
  outer: (options: O | undefined) => L | null,
  waitMs: number,
): Lockable<L, O> {
  const acquire = async (options?: O): Promise<L> => leaseOf(await attempt(options, waitMs));
  return {
    acquire,
    async tryAcquire(options) {
      const outcome = await attempt(options, 0);
      return outcome.kind === 'granted' ? outcome.lease : null;
    },
    async withLock(work, given) {
      checkWork(work);
      const { options, reentrant } = splitOptions(given);
      const own = reentrant ? outer(options) : null;
      return own ? runInside(own, work) : runUnder(await acquire(options), work);
    },
    async tryWithLock(work, given) {
      checkWork(work);
      const { options, reentrant } = splitOptions(given);
      const own = reentrant ? outer(options) : null;
      if (own) return { acquired: true, value: await runInside(own, work) };
      const outcome = await attempt(options, 0);
      if (outcome.kind === 'busy') return { acquired: false, holders: outcome.holders.map(holderInfo) };
      return { acquired: true, value: await runUnder(outcome.lease, work) };
    },
  };
}

export function leaseOf<L>(outcome: Outcome<L>): L {
  if (outcome.kind === 'granted') return outcome.lease;
  throw timeoutError(outcome);
}

export function timeoutError({ key, holders, heldHere }: Busy): AcquireTimeoutError {
  const here = heldHere ? '; this process holds it with another lease' : '';
  const message = `could not acquire "${key}" in time: ${describe(holders)}${here}. Try later, or wait longer with the option \`wait\`.`;
  return new AcquireTimeoutError(message, { key, holders: holders.map(holderInfo) });
}

function describe(holders: readonly HolderView[]): string {
  const [first, ...others] = holders;
  if (!first) return 'others were in the queue before this caller';
  const { owner, resting, acquiredAt, expiresAt } = first;
  const who = resting
    ? `${owner} released it, but it is in its cool-down (minHold) until ${dateTime(expiresAt)}`
    : `held by ${owner} since ${dateTime(acquiredAt)} (expires at ${dateTime(expiresAt)} unless renewed)`;
  return others.length > 0 ? `${who}, and by ${others.length} more` : who;
}

/**
 * With date and zone: a lock may be held for days, and readers are in other zones. Other software may store any number.
 */
function dateTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}
