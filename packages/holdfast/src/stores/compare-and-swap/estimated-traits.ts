/** The traits of stores on the compare-and-swap adapter. */
import type { Traits } from '../../protocol/index.js';

/** `clockErrorMs`: the usual error of the time. */
export function estimatedTraits(
  clockErrorMs: number,
  more: Pick<Traits, 'push' | 'queue'> & Partial<Traits>,
): Traits {
  return { clock: 'estimate', clockErrorMs, shared: 'network', durable: true, livenessPollMs: null, ...more };
}
