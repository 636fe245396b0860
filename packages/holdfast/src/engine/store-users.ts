/** Counts how many `createLocks` use a store, so that the store is closed with the last of them and not before. */
import type { Store } from '../protocol/store.js';

const users = new WeakMap<Store, number>();

export function joinStore(store: Store): void {
  users.set(store, (users.get(store) ?? 0) + 1);
}

/** Resolves once the store is closed, or at once while others still use it. */
export async function leaveStore(store: Store): Promise<void> {
  const left = (users.get(store) ?? 1) - 1;
  users.set(store, left);
  if (left === 0) await store.close();
}
