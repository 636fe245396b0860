/** Stores with many locks in them, which keep a record of what they are asked. */
import { type Store, UnsupportedError } from 'holdfast';
import type { ListQuery } from 'holdfast/protocol';
import { allows, prefixesOf, rightsOf } from '../../src/auth/rights.js';
import type { Authenticator } from '../../src/index.js';

export interface Lock {
  readonly key: string;
  readonly metadata?: string;
  readonly capacity?: number;
}

let processes = 0;

/** Makes each of them held, as somebody at the store itself does. */
export async function fill(store: Store, locks: readonly Lock[]): Promise<void> {
  const hold = { process: `filler-${++processes}` };
  const claims = locks.map(({ key, metadata = null, capacity = 1 }, index) => {
    const own = { key, metadata, capacity, hold: { ...hold, number: index + 1 } };
    return {
      kind: 'claim',
      owner: 'o',
      permits: 1,
      ttlMs: 600_000,
      queue: false,
      inbox: null,
      ...own,
    } as const;
  });
  const replies = await Promise.all(store.apply(claims));
  if (!replies.every(({ kind }) => kind === 'granted')) throw new Error('Not all of them were granted.');
}

export interface Observed extends Store {
  /** What was listed, and how much of it was given. */
  readonly listed: { readonly query: ListQuery; given: number }[];
  readonly reads: string[];
}

export function observed(inner: Store): Observed {
  const listed: Observed['listed'] = [];
  const reads: string[] = [];
  return {
    ...inner,
    listed,
    reads,
    async *list(query) {
      const entry = { query, given: 0 };
      listed.push(entry);
      for await (const snapshot of inner.list(query)) {
        entry.given += 1;
        yield snapshot;
      }
    },
    read(key) {
      reads.push(key);
      return inner.read(key);
    },
  };
}

/** `x-rights: read:a lock:b` is somebody who has these. */
export const byRights: Authenticator = {
  authenticate({ headers }) {
    const rights = rightsOf(String(headers['x-rights']).split(' ').filter(Boolean));
    return {
      id: 'somebody',
      owner: 'somebody',
      may: (role, namespace) => allows(rights, role, namespace),
      prefixes: (role) => prefixesOf(rights, role),
    };
  },
};

/** A store in which a newer version wrote the record of this key: a list rejects at it. */
export function withNewer(inner: Store, newer: string): Store {
  return {
    ...inner,
    async *list(query) {
      for await (const snapshot of inner.list(query)) {
        if (snapshot.key === newer) throw new UnsupportedError('It has format 99.', { key: newer });
        yield snapshot;
      }
    },
  };
}
