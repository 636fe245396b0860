/** What the run showed, and whether it showed what it should. */
import { NAMES } from './contest.js';

/** @typedef {import('./contest.js').Happening} Happening */

/** @param {import('./contest.js').Contest} contest */
export function summaryOf(contest) {
  const inOrder = [...contest.happenings].sort((a, b) => a.atMs - b.atMs);
  const tokens = inOrder.flatMap((happening) => (isGrant(happening) ? [happening.token] : []));
  const rising = tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0));
  const overlaps = overlapsIn(inOrder);
  const kills = inOrder.filter(({ kind }) => kind === 'killed').length;
  const takeovers = inOrder.flatMap((happening) =>
    happening.kind === 'took over' ? [happening.afterMs] : [],
  );
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

/** @param {Happening} happening @returns {happening is Happening & { kind: 'acquired' | 'took over' }} */
function isGrant(happening) {
  return happening.kind === 'acquired' || happening.kind === 'took over';
}

/** Grants that came while an earlier one was neither released nor killed. @param {readonly Happening[]} inOrder */
function overlapsIn(inOrder) {
  let held = false;
  let overlaps = 0;
  for (const happening of inOrder) {
    if (isGrant(happening)) {
      if (held) overlaps += 1;
      held = true;
    } else if (happening.kind === 'released' || happening.kind === 'killed') {
      held = false;
    }
  }
  return overlaps;
}
