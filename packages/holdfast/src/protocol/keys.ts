/** The one order of keys, and which of them a list goes through. */
import type { ListQuery } from './store.js';

/**
 * By code points, as the bytes of UTF-8 sort. JavaScript's own order has letters beyond U+FFFF before U+E000 to U+FFFF:
 * a page that ends by one order and goes on by another leaves keys out, or never ends.
 */
export function compareKeys(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let at = 0;
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

/** For stores whose engine has no such order: those of the keys that the query asks for, in order, however many. */
export function keysInOrder(keys: Iterable<string>, { prefix, after }: ListQuery): string[] {
  return [...keys]
    .filter((key) => key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0))
    .sort(compareKeys);
}
