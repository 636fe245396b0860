/** Limits the size of a map or a set. */

/** The share of `max` that is forgotten at once. */
const SHARE = 1 / 100;

/**
 * Forgets the oldest entries while there are more than `max`. A large map loses a hundredth at a time: to find its first
 * entry, a map steps over all deleted entries before it, and with 10,000 of them that takes longer than the rest of a
 * request.
 */
export function forgetOldest<T>(
  entries: { readonly size: number; keys(): Iterable<T> },
  max: number,
  forget: (oldest: T) => void,
): void {
  if (entries.size <= max) return;
  const kept = max - Math.floor((max - 1) * SHARE);
  for (const oldest of entries.keys()) {
    if (entries.size <= kept) return;
    forget(oldest);
  }
}
