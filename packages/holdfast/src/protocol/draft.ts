/** A state being worked on: the lists are replaced, never changed in place, so the state given stays as it was. */
import type { Wake } from './commands.js';
import { KEEP_MS, MARKS_MAX, STATE_VERSION } from './constants.js';
import type { Holder, HoldId, Mark, Rest, State, Waiter } from './state.js';

export interface Draft {
  readonly from: State;
  token: number;
  holders: readonly Holder[];
  rests: readonly Rest[];
  waiters: readonly Waiter[];
  ended: readonly Mark[];
  /** Whether there is anything to store. */
  changed: boolean;
  /** Waiters whose window this decision opened. */
  called: Waiter[];
  wakes: Wake[];
}

export function openDraft(from: State): Draft {
  const { token, holders, rests, waiters, ended } = from;
  return { from, token, holders, rests, waiters, ended, changed: false, called: [], wakes: [] };
}

/** Above everything before it, on this record and on any that was cleaned up: the clock had passed those. */
export function rise(last: number, now: number): number {
  return Math.max(last + 1, now * 1_000);
}

export function finish(draft: Draft, now: number): State {
  if (!draft.changed) return draft.from;
  const { token, holders, rests, waiters, ended } = draft;
  const decision = rise(draft.from.decision, now);
  return { version: STATE_VERSION, token, decision, holders, rests, waiters, ended };
}

/** Drops what is over. What expires has ended, so it is marked like anything else that ends. */
export function sweep(draft: Draft, now: number): void {
  const isOver = (entry: { readonly expiresAt: number }): boolean => entry.expiresAt <= now;
  const isLive = (entry: { readonly expiresAt: number }): boolean => entry.expiresAt > now;
  if (draft.ended.some((mark) => mark.until <= now)) {
    draft.ended = draft.ended.filter((mark) => mark.until > now);
    draft.changed = true;
  }
  if (draft.rests.some(isOver)) {
    draft.rests = draft.rests.filter(isLive);
    draft.changed = true;
  }
  for (const list of ['holders', 'waiters'] as const) {
    const over = draft[list].filter(isOver);
    if (over.length === 0) continue;
    if (list === 'holders') draft.holders = draft.holders.filter(isLive);
    else draft.waiters = draft.waiters.filter(isLive);
    for (const { hold } of over) markEnded(draft, hold, now);
  }
}

/** A claim at or below its process's mark is refused: it is late, doubled, or was overtaken by its withdrawal. */
export function markEnded(draft: Draft, { process, number }: HoldId, now: number): void {
  const until = now + KEEP_MS;
  const mark = draft.ended.find((other) => other.process === process);
  draft.changed ||= mark?.number !== number;
  if (mark && mark.number === number) return;
  const others = draft.ended.filter((other) => other !== mark).slice(1 - MARKS_MAX);
  draft.ended = [...others, { process, number: Math.max(number, mark?.number ?? 0), until }];
}
