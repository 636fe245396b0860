/** One lease, or several that are held as one, as the commands that hold locks see them. */
import type { Lease, LeaseGroup } from 'holdfast';
import { quote } from '../printing/terminal.js';

export interface Held extends Pick<LeaseGroup, 'held' | 'signal' | 'assertHeld'> {
  /** At least one. */
  readonly leases: readonly Lease[];
  /** The remaining time of the lease that ends first. */
  readonly remainingMs: number;
}

export function heldOf(held: Lease | LeaseGroup): Held {
  const leases = 'leases' in held ? held.leases : [held];
  return {
    leases,
    signal: held.signal,
    get held() {
      return held.held;
    },
    get remainingMs() {
      return Math.min(...leases.map((lease) => lease.remainingMs));
    },
    assertHeld: () => held.assertHeld(),
  };
}

/** Keys in a message: `"a"`, or `"a", "b"`. */
export function quoted(keys: readonly string[]): string {
  return keys.map(quote).join(', ');
}

export const keysOf = ({ leases }: Held): readonly string[] => leases.map(({ key }) => key);
