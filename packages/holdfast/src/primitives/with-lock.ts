/** Work under a lease. */
import type { AcquireOptions, Lease, LeaseGroup, WorkOptions } from '../api.js';
import { checkFlag } from '../arguments.js';
import { HeldLease, leaseWith, releaseQuietly } from '../lease/lease.js';
import { noteWorkEnded, workContext } from '../lease/work-context.js';
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';

type Work<L, T> = (lease: L) => Promise<T> | T;

/**
 * Runs work, and releases. Work that ends after its lease was lost has failed, even with a result (P10). It has ended only
 * when the work inside it has, which it may not have awaited.
 */
export async function runUnder<L extends Lease | LeaseGroup, T>(lease: L, work: Work<L, T>): Promise<T> {
  const leases = partsOf(lease);
  try {
    let result: T;
    try {
      result = await runHolding(leases, () => work(lease));
    } finally {
      // No `await` between the last check and the release: inner work that begins later has to get the lock itself.
      for (let inner = innerWorkEnds(leases); inner; inner = innerWorkEnds(leases)) await inner;
    }
    for (const part of leases) if (!part.held && part.state === 'lost') throw lateError(part, result);
    return result;
  } finally {
    noteWorkEnded(leases);
    await releaseQuietly(lease);
  }
}

/** Runs work in the context of these leases, and releases nothing. */
export function runHolding<T>(leases: readonly Lease[], work: () => T): T {
  return workContext.run(contextOf(leases), work);
}

export async function releaseAfterInnerWork(lease: Lease): Promise<void> {
  for (let inner = innerWorkEnds([lease]); inner; inner = innerWorkEnds([lease])) await inner;
  noteWorkEnded([lease]);
  await releaseQuietly(lease);
}

/** Resolves when some of the inner work has ended; null if none runs on a lease that is still held. */
function innerWorkEnds(leases: readonly Lease[]): Promise<void> | null {
  for (const lease of leases) {
    const ends = lease.state === 'held' ? innerWork.get(lease)?.ends(lease) : null;
    if (ends) return ends;
  }
  return null;
}

/** Runs work inside the work that the lease belongs to, which releases it after both have ended. */
export async function runInside<L extends Lease | LeaseGroup, T>(lease: L, work: Work<L, T>): Promise<T> {
  const running = partsOf(lease).map((part) => innerWorkOf(outerOfInner.get(part) ?? part));
  for (const one of running) one.begin();
  try {
    const result = await work(lease);
    for (const part of partsOf(lease)) if (!part.held) throw lateError(part, result);
    return result;
  } finally {
    for (const one of running) one.end();
  }
}

/** Counts the work inside the work of one lease. */
class InnerWork {
  #count = 0;
  #onEnded: (() => void) | null = null;

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#onEnded?.();
  }

  /** Resolves at the latest with the end of the lease: the caller has to learn of a loss, even while inner work runs. */
  ends(lease: Lease): Promise<void> | null {
    if (this.#count === 0) return null;
    return new Promise<void>((resolve) => {
      this.#onEnded = resolve;
      if (lease instanceof HeldLease) void HeldLease.ended(lease).then(resolve);
    });
  }
}

const innerWork = new WeakMap<Lease, InnerWork>();
const outerOfInner = new WeakMap<Lease, Lease>();

function innerWorkOf(lease: Lease): InnerWork {
  const known = innerWork.get(lease) ?? new InnerWork();
  innerWork.set(lease, known);
  return known;
}

/** The lease as inner work gets it: releasing it does nothing, because it is the outer work's. */
export function innerLease(lease: Lease): Lease {
  const release = async (): Promise<void> => undefined;
  const inner = leaseWith(lease, { release, [Symbol.asyncDispose]: release });
  outerOfInner.set(inner, lease);
  return inner;
}

function partsOf(lease: Lease | LeaseGroup): readonly Lease[] {
  return 'leases' in lease ? lease.leases : [lease];
}

/** Leaves out leases that are over, so that work that starts its own successor does not keep all its predecessors. */
function contextOf(leases: readonly Lease[]): readonly HeldLease[] {
  const outer = workContext.getStore()?.filter(({ state }) => state === 'held') ?? [];
  return [...outer, ...leases.filter((lease) => lease instanceof HeldLease)];
}

function lateError(lease: Lease, result: unknown): LeaseLostError {
  const cause: unknown = lease.signal.reason;
  const loss = cause instanceof LeaseLostError ? cause : null;
  const why = loss?.message ?? `Its lease (token ${lease.token}) had been released by the outer work.`;
  const message = `The work under "${lease.key}" ended too late: others may have run beside it. ${why}`;
  return new LeaseLostError(message, { key: lease.key, reason: loss?.reason, result, cause });
}

export function checkWork(work: unknown): void {
  if (typeof work === 'function') return;
  throw new InvalidArgumentError(
    'The work to do under the lock has to be a function. It comes before the options.',
  );
}

/** Options that are no object are refused later, with the check of the other options. */
export function hasWorkOptions<O>(options: O | undefined): options is O & Required<WorkOptions> {
  return typeof options === 'object' && options !== null && 'reentrant' in options;
}

/** The options of the lock, without those of the work; and whether it is reentrant. */
export function splitOptions<O extends AcquireOptions>(
  options: (O & WorkOptions) | undefined,
): { readonly options: O | undefined; readonly reentrant: boolean } {
  if (!hasWorkOptions(options)) return { options, reentrant: false };
  const { reentrant, ...others } = options;
  return {
    options: others as unknown as O,
    reentrant: reentrant !== undefined && checkFlag(reentrant, 'reentrant'),
  };
}
