/** The three verbs, made from one attempt: what differs between a mutex, a semaphore and a group is only that. */
import type { AcquireOptions, Lease, LeaseGroup, Lockable } from '../api.js';
import { runUnder } from '../lease.js';
import type { HolderView } from '../protocol/commands.js';
import { AcquireTimeoutError, InvalidArgumentError } from '../protocol/errors.js';

export type Outcome<L> =
  | { readonly kind: 'granted'; readonly lease: L }
  | {
      readonly kind: 'busy';
      readonly key: string;
      readonly holders: readonly HolderView[];
      /** Another lease of this process holds the key. */
      readonly heldHere: boolean;
    };

/** One try with these options; `waitMs` counts when they name no wait. */
export type Attempt<L, O> = (options: O | undefined, waitMs: number) => Promise<Outcome<L>>;

export function verbs<L extends Lease | LeaseGroup, O extends AcquireOptions>(
  attempt: Attempt<L, O>,
  waitMs: number,
): Lockable<L, O> {
  const acquire = async (options?: O): Promise<L> => leaseOf(await attempt(options, waitMs));
  return {
    acquire,
    async tryAcquire(options) {
      const outcome = await attempt(options, 0);
      return outcome.kind === 'granted' ? outcome.lease : null;
    },
    async withLock(work, options) {
      checkWork(work);
      return runUnder(await acquire(options), work);
    },
  };
}

export function leaseOf<L>(outcome: Outcome<L>): L {
  if (outcome.kind === 'granted') return outcome.lease;
  const { key, holders, heldHere } = outcome;
  const owners = holders.map(({ owner }) => owner);
  const here = heldHere ? '; this very process holds it with another lease' : '';
  const message = `"${key}" was not free in time: ${describe(holders)}${here}. Try later, or wait longer with the option \`wait\`.`;
  throw new AcquireTimeoutError(message, { key, holders: owners });
}

export function checkWork(work: unknown): void {
  if (typeof work === 'function') return;
  throw new InvalidArgumentError('The work to do under the lock has to be a function.');
}

function describe(holders: readonly HolderView[]): string {
  const [first, ...others] = holders;
  if (!first) return 'others stood in line before this caller';
  const { owner, resting, acquiredAt, expiresAt } = first;
  const who = resting
    ? `it rests until ${clockTime(expiresAt)} after ${owner} released it`
    : `held by ${owner} since ${clockTime(acquiredAt)}, at least until ${clockTime(expiresAt)} unless released`;
  return others.length > 0 ? `${who}, and by ${others.length} more` : who;
}

function clockTime(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
