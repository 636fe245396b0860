/** One lease, or several that are held as one, as the commands that hold locks see them. */
import type { Lease, LeaseGroup, Locks } from 'holdfast';
import { within } from '../clock.js';
import { quote, type Terminal, warn } from '../printing/terminal.js';

const EVICT_MS_MAX = 5_000;

export interface Held extends Pick<LeaseGroup, 'held' | 'signal' | 'assertHeld'> {
  /** At least one. */
  readonly leases: readonly Lease[];
  /** That of the lease that ends first. */
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

/** Ends the cool-down of released leases that nothing ran under, by an eviction of their tokens. */
export async function endCoolDown(leases: readonly Lease[], locks: Locks, terminal: Terminal): Promise<void> {
  for (const { key, token } of leases) {
    try {
      await within(EVICT_MS_MAX, locks.evict(key, { token }));
    } catch (error) {
      warn(terminal, `${quote(key)} is kept for --min-hold, although nothing ran under it`, error);
    }
  }
}
