/** A state being worked on: the lists are replaced, never changed in place, so the state given stays as it was. */
import type { Wake } from './commands.js';
import { KEEP_MS, MARKS_MAX, STATE_VERSION } from './constants.js';
import type { Eviction, Holder, HoldId, Mark, Rest, State, Waiter } from './state.js';

export interface Draft {
  readonly from: State;
  /** The earliest that it may be. Entries expire by this time, never by `now`. */
  readonly earliest: number;
  token: number;
  holders: readonly Holder[];
  rests: readonly Rest[];
  waiters: readonly Waiter[];
  ended: readonly Mark[];
  evictions: readonly Eviction[];
  /** Whether there is anything to store. */
  changed: boolean;
  /** Waiters to wake: their window opened, or they came to the head of a key in its cool-down. */
  called: readonly Waiter[];
  wakes: readonly Wake[];
}

const NOBODY: readonly Waiter[] = [];
const NO_WAKES: readonly Wake[] = [];

export function openDraft(from: State, earliest: number): Draft {
  const { token, holders, rests, waiters, ended, evictions } = from;
  return {
    from,
    earliest,
    token,
    holders,
    rests,
    waiters,
    ended,
    evictions,
    changed: false,
    called: NOBODY,
    wakes: NO_WAKES,
  };
}

/** A number above all earlier ones, also above those of a record that was cleaned up: the clock had passed them. */
export const rise = (last: number, now: number): number => Math.max(last + 1, now * 1_000);

export function finish(draft: Draft, now: number): State {
  if (!draft.changed) return draft.from;
  const { token, holders, rests, waiters, ended, evictions } = draft;
  const decision = rise(draft.from.decision, now);
  return { version: STATE_VERSION, token, decision, holders, rests, waiters, ended, evictions };
}

/** Drops everything that is over. Expired holds get a mark, like all holds that end. */
export function sweep(draft: Draft, now: number): void {
  const { ended, rests, holders, evictions, earliest } = draft;
  // This alone is no change to store: with evictions kept until the next write, decisions are the same.
  if (evictions.length > 0) draft.evictions = evictions.filter(({ until }) => until > earliest);
  if (anyMarkOver(ended, earliest)) {
    draft.ended = ended.filter((mark) => mark.until > earliest);
    draft.changed = true;
  }
  if (anyOver(rests, earliest)) {
    draft.rests = rests.filter(({ expiresAt }) => expiresAt > earliest);
    draft.changed = true;
  }
  if (anyOver(holders, earliest)) {
    draft.holders = holders.filter(({ expiresAt }) => expiresAt > earliest);
    draft.changed = true;
    for (const { hold, expiresAt } of holders) if (expiresAt <= earliest) markEnded(draft, hold, now);
  }
  // Read only now: the end of a holder may have removed waiters of its process from the queue.
  const { waiters } = draft;
  if (anyOver(waiters, earliest)) {
    draft.waiters = waiters.filter(({ expiresAt }) => expiresAt > earliest);
    draft.changed = true;
    for (const { hold, expiresAt } of waiters) if (expiresAt <= earliest) markEnded(draft, hold, now);
  }
}

const anyOver = (list: readonly { readonly expiresAt: number }[], earliest: number): boolean =>
  list.length > 0 && list.some(({ expiresAt }) => expiresAt <= earliest);

// Plain loops over the marks: every command goes through all of them, and a busy key has 128.
function anyMarkOver(ended: readonly Mark[], earliest: number): boolean {
  for (const { until } of ended) if (until <= earliest) return true;
  return false;
}

/** The mark of this process, if a hold of it has ended here. */
export function markOf(ended: readonly Mark[], process: string): Mark | null {
  for (const mark of ended) if (mark.process === process) return mark;
  return null;
}

/**
 * A claim at or below its process's mark is refused: it is late, doubled, or was overtaken by its withdrawal. A waiter
 * with such a number could never be granted and would hold up the others, so it leaves the queue.
 */
export function markEnded(draft: Draft, { process, number }: HoldId, now: number): void {
  const { ended, waiters } = draft;
  const mark = markOf(ended, process);
  if (mark?.number === number) return;
  draft.changed = true;
  const isEnded = ({ hold }: Waiter): boolean => hold.process === process && hold.number <= number;
  if (waiters.length > 0 && waiters.some(isEnded))
    draft.waiters = waiters.filter((waiter) => !isEnded(waiter));
  const next = { process, number: Math.max(number, mark?.number ?? 0), until: now + KEEP_MS };
  const others = mark ? ended.filter((other) => other !== mark) : ended;
  draft.ended = [...(others.length < MARKS_MAX ? others : others.slice(1 - MARKS_MAX)), next];
}
