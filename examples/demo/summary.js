/** What the run showed, and whether it showed what it should. */
import { NAMES } from './contest.js';

/** @typedef {import('./contest.js').ContestEvent} ContestEvent */

/** @param {import('./contest.js').Contest} contest */
export function summaryOf(contest) {
  const inOrder = [...contest.events].sort((a, b) => a.atMs - b.atMs);
  const tokens = inOrder.flatMap((event) => (isGrant(event) ? [event.token] : []));
  const rising = tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0));
  const overlaps = overlapsIn(inOrder);
  const kills = inOrder.filter(({ kind }) => kind === 'killed').length;
  const takeovers = inOrder.flatMap((event) => (event.kind === 'took over' ? [event.afterMs] : []));
  const shares = NAMES.map((name) => `${name} ${contest.workers.get(name)?.grants ?? 0}`).join(', ');
  const times = takeovers.map((ms) => `${Math.round(ms)} ms`).join(', ');
  const lines = [
    `Grants: ${tokens.length} (${shares}).`,
    `Tokens: ${rising ? 'every one higher than the one before' : 'NOT RISING'}.`,
    `Two holders at once: ${overlaps === 0 ? 'never' : overlaps}.`,
    `Killed while holding: ${kills}. Taken over after ${times || '–'}, at a ttl of 30 s.`,
  ];
  return { good: rising && overlaps === 0 && takeovers.length > 0, lines };
}

/** @param {ContestEvent} event @returns {event is ContestEvent & { kind: 'acquired' | 'took over' }} */
function isGrant(event) {
  return event.kind === 'acquired' || event.kind === 'took over';
}

/** Grants that came while an earlier one was neither released nor killed. @param {readonly ContestEvent[]} inOrder */
function overlapsIn(inOrder) {
  let held = false;
  let overlaps = 0;
  for (const event of inOrder) {
    if (isGrant(event)) {
      if (held) overlaps += 1;
      held = true;
    } else if (event.kind === 'released' || event.kind === 'killed') {
      held = false;
    }
  }
  return overlaps;
}
