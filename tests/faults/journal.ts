/** What the resource behind a lock would have noticed: who worked on it at the same time, and with which tokens. */
import type { Turn } from './turns.js';

/** Sets of turns that overlapped more than `capacity` allows, told so that a person can see what happened. */
export function crowdings(turns: readonly Turn[], capacity = 1): readonly string[] {
  return turns.flatMap((turn) => {
    const together = turns.filter((other) => other.fromMs <= turn.fromMs && turn.fromMs <= other.toMs);
    return together.length > capacity ? [together.map(tell).join(' with ')] : [];
  });
}

/** Turns whose token is not above that of the turn before. */
export function staleTokens(turns: readonly Turn[]): readonly string[] {
  const inOrder = [...turns].sort((one, other) => one.fromMs - other.fromMs);
  return inOrder.flatMap((turn, at) => {
    const before = inOrder[at - 1];
    return before && before.token >= turn.token ? [`${tell(turn)} after ${tell(before)}`] : [];
  });
}

function tell({ who, token, fromMs, toMs }: Turn): string {
  return `${who} (token ${token}, ${fromMs.toFixed(1)} to ${toMs.toFixed(1)} ms)`;
}
