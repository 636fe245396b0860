/** The order of keys, the keys of a list, and a list that goes on behind unreadable records. */
import { UnsupportedError } from './errors.js';
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

/** For stores whose engine has no such order: the keys that the query selects, in order, without its limit. */
export function keysInOrder(keys: Iterable<string>, { prefix, after }: ListQuery): string[] {
  return [...keys]
    .filter((key) => key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0))
    .sort(compareKeys);
}

/**
 * A list rejects at a record that cannot be read, such as one of a newer format. This one passes the error to `onRefused`
 * and goes on behind it. A limit of the query counts again from there.
 */
export async function* listAround<T, Q extends { readonly after?: string }>(
  list: (query: Q) => AsyncIterable<T>,
  query: Q,
  onRefused: (refusal: UnsupportedError) => void,
): AsyncGenerator<T> {
  for (let from = query; ; ) {
    try {
      yield* list(from);
      return;
    } catch (error) {
      if (!(error instanceof UnsupportedError) || error.key === undefined || error.key === from.after) {
        throw error;
      }
      onRefused(error);
      from = { ...from, after: error.key };
    }
  }
}
