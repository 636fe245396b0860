/** Reads keys through the functions `read` and `list`, over any transport. */
import { checkVersion, compareKeys, type Snapshot, type Store } from '../../protocol/index.js';
import { firstOf } from '../clients/listed.js';

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
  /** A page that begins at the prefix, or after a key that does not sort before it. */
  list(prefix: string, after: string | null): Promise<unknown>;
}

export function readsOf(functions: Functions): Pick<Store, 'read' | 'list'> {
  async function* snapshots(prefix: string, after: string | null): AsyncGenerator<Snapshot> {
    for (let last = after; ; ) {
      const { views, next } = (await functions.list(prefix, last)) as Page;
      for (const view of views) yield readable(view);
      if (next === null) return;
      last = next;
    }
  }

  return {
    async read(key) {
      const found = await functions.read(key);
      return found === null || found === undefined ? null : readable(found as View);
    },
    list({ prefix, after, limit }) {
      const from = after !== undefined && compareKeys(after, prefix) >= 0 ? after : null;
      return firstOf(snapshots(prefix, from), limit);
    },
  };
}

function readable(view: View): Snapshot {
  if (!('error' in view)) return view;
  checkVersion(view.version, view.key);
  throw new Error(`The record of "${view.key}" cannot be read.`);
}
