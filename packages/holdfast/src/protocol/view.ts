/** A key as anybody may see it. Hold ids and inboxes are capabilities and stay out. */
import type { HolderView } from './commands.js';
import type { HolderInfo, Metadata } from './holder-info.js';
import { isObject } from './is-object.js';
import { type Holder, missedItsWindow, type Rest, type State } from './state.js';
import type { Snapshot } from './store.js';

export function holderView(holder: Holder | Rest): HolderView {
  const { owner, permits, capacity, token, acquiredAt, expiresAt } = holder;
  const resting = !('hold' in holder);
  const metadata = resting ? null : holder.metadata;
  return { owner, permits, capacity, token, acquiredAt, expiresAt, metadata, resting };
}

export function holderInfo(view: HolderView): HolderInfo {
  return {
    ...view,
    acquiredAt: new Date(view.acquiredAt),
    expiresAt: new Date(view.expiresAt),
    metadata: readMetadata(view.metadata),
  };
}

/** Undefined also for text that is no JSON object: a text of another program must not make the key unreadable. */
export function readMetadata(text: string | null): Metadata | undefined {
  if (text === null) return undefined;
  try {
    const metadata: unknown = JSON.parse(text);
    return isObject(metadata) && !Array.isArray(metadata) ? metadata : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Null when the key has no holder and no waiter. */
export function snapshotOf(key: string, state: State | null, now: number): Snapshot | null {
  if (!state) return null;
  const isLive = (entry: { readonly expiresAt: number }): boolean => entry.expiresAt > now;
  const holders = [...state.holders, ...state.rests].filter(isLive).map(holderView);
  const waiters = state.waiters.filter(isLive).map((waiter) => {
    const { owner, permits, capacity, since, wokenAt } = waiter;
    return { owner, permits, capacity, since, woken: wokenAt !== null && !missedItsWindow(waiter, now) };
  });
  if (holders.length === 0 && waiters.length === 0) return null;
  return { key, now, token: state.token, holders, waiters };
}
