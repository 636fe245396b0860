/** The queue of waiters: which claims have room, which waiter is woken next, and how soon to claim again. */
import { NAME_AGAIN_MS, WINDOW_HINT_MS, WINDOW_MS } from './constants.js';
import type { Draft } from './draft.js';
import { missedItsWindow, type Waiter } from './state.js';

interface Share {
  readonly permits: number;
  readonly capacity: number;
}

/** The permits in use. The capacity in force is the smallest that any of the holders and waiters names. */
class Tally {
  private permits = 0;
  private capacity = Number.MAX_SAFE_INTEGER;

  add(taker: Share): void {
    this.permits += taker.permits;
    this.capacity = Math.min(this.capacity, taker.capacity);
  }

  fits(wants: Share): boolean {
    return this.permits + wants.permits <= Math.min(this.capacity, wants.capacity);
  }
}

function taken(draft: Draft): Tally {
  const tally = new Tally();
  for (const holder of draft.holders) tally.add(holder);
  for (const rest of draft.rests) tally.add(rest);
  return tally;
}

/** Whether a claimant behind the first `ahead` waiters fits beside holders, cool-downs and woken waiters. */
export function hasRoom(draft: Draft, ahead: number, wants: Share): boolean {
  const tally = taken(draft);
  for (const waiter of draft.waiters.slice(0, ahead)) {
    if (missedItsWindow(waiter, draft.earliest)) continue;
    if (waiter.wokenAt === null) return false;
    tally.add(waiter);
  }
  return tally.fits(wants);
}

/**
 * Opens a window for every waiter that now fits, in order, and closes the windows of waiters that no longer fit. Waiters
 * behind the first that does not fit are not woken, so that small claims never starve a large one.
 */
export function callNext(draft: Draft, now: number): void {
  const tally = taken(draft);
  let blocked = false;
  draft.waiters.forEach((waiter, index) => {
    if (missedItsWindow(waiter, draft.earliest)) return;
    blocked ||= !tally.fits(waiter);
    if (blocked) {
      if (waiter.wokenAt !== null) replace(draft, index, { ...waiter, wokenAt: null });
      return;
    }
    tally.add(waiter);
    if (waiter.wokenAt !== null) return;
    const called = { ...waiter, wokenAt: now };
    replace(draft, index, called);
    draft.called = [...draft.called, called];
  });
}

function replace(draft: Draft, index: number, waiter: Waiter): void {
  draft.waiters = draft.waiters.with(index, waiter);
  draft.changed = true;
}

/** Whether it was woken a while ago and has not claimed yet. The wake-up may be lost, so it is sent again. */
export function isOverdue({ wokenAt }: Waiter, earliest: number): boolean {
  return wokenAt !== null && earliest >= wokenAt + NAME_AGAIN_MS && earliest < wokenAt + WINDOW_MS;
}

/** How soon a hold or a waiter before this claimant may be over. */
export function freeInMs(draft: Draft, ahead: number): number {
  const { earliest } = draft;
  let at = Number.MAX_SAFE_INTEGER;
  for (const holder of draft.holders) at = Math.min(at, holder.expiresAt);
  for (const rest of draft.rests) at = Math.min(at, rest.expiresAt);
  for (const waiter of draft.waiters.slice(0, ahead)) {
    if (waiter.wokenAt === null) at = Math.min(at, waiter.expiresAt);
    else if (!missedItsWindow(waiter, earliest)) {
      at = Math.min(at, waiter.wokenAt + WINDOW_MS, earliest + WINDOW_HINT_MS);
    }
  }
  return at - earliest;
}
