/** Bounds what a map or a set remembers. */

/** Forgotten beyond the limit at once. */
const SHARE = 1 / 100;

/**
 * Forgets the oldest entries while there are more than `max`. Of many, a hundredth goes at a time: to find its first entry, a
 * map steps over all that were deleted before it, and with 10,000 entries that takes longer than the rest of a request.
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
