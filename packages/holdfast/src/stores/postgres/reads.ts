/** Reads keys through the functions `read` and `list`, over any transport. */
import {
  checkVersion,
  compareKeys,
  type ListQuery,
  type Snapshot,
  type Store,
} from '../../protocol/index.js';

/** Rows per page of a list. */
export const PAGE_ROWS = 500;

type View = Snapshot | { readonly key: string; readonly error: 'version'; readonly version: number };

interface Page {
  readonly views: readonly View[];
  /** The key after which the next page begins; null at the end. */
  readonly next: string | null;
}

export interface Functions {
  read(key: string): Promise<unknown>;
  /** A page that begins at the prefix, or after a key that is not lower. */
  list(prefix: string, after: string | null): Promise<unknown>;
}

export function readsOf(functions: Functions): Pick<Store, 'read' | 'list'> {
  return {
    async read(key) {
      const found = await functions.read(key);
      return found === null || found === undefined ? null : readable(found as View);
    },
    async *list({ prefix, after, limit = Number.POSITIVE_INFINITY }: ListQuery): AsyncIterable<Snapshot> {
      let left = limit;
      let last = after !== undefined && compareKeys(after, prefix) >= 0 ? after : null;
      while (left > 0) {
        const { views, next } = (await functions.list(prefix, last)) as Page;
        for (const view of views) {
          if (left <= 0) return;
          left -= 1;
          yield readable(view);
        }
        if (next === null) return;
        last = next;
      }
    },
  };
}

function readable(view: View): Snapshot {
  if (!('error' in view)) return view;
  checkVersion(view.version, view.key);
  throw new Error(`The record of "${view.key}" cannot be read.`);
}
