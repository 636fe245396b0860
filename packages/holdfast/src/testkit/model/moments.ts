/** The interesting moments of a key: when an entry expires, and whether a command met an expiry. */
import { type Command, NAME_AGAIN_MS, type State, sameHold, WINDOW_MS } from '../../protocol/index.js';
import type { Random } from '../random.js';

/** Whether a command meets an expired entry, an unused window that closed, or an ended hold. */
export function meetsEnd(state: State, command: Command, now: number): boolean {
  const isOver = (entry: { readonly expiresAt: number }): boolean => entry.expiresAt <= now;
  const expired = state.holders.some(isOver) || state.rests.some(isOver) || state.waiters.some(isOver);
  const windowEnd = state.waiters.some(({ wokenAt }) => wokenAt !== null && wokenAt + WINDOW_MS <= now);
  return expired || windowEnd || (command.kind !== 'evict' && hasEnded(state, command));
}

function hasEnded({ holders, ended }: State, { hold }: Exclude<Command, { kind: 'evict' }>): boolean {
  if (holders.some((holder) => sameHold(holder.hold, hold))) return false;
  return ended.some((mark) => mark.process === hold.process && mark.number >= hold.number);
}

/** How long to wait so that the next command arrives at or near an interesting moment. */
export function pauseTowards(state: State, now: number, random: Random): number {
  const draw = random.next();
  if (draw < 0.45) return 0;
  if (draw < 0.6) return random.between(1, 25);
  const soon: number[] = [];
  const late: number[] = [];
  for (const { expiresAt } of [...state.holders, ...state.rests]) soon.push(expiresAt);
  for (const { until } of state.evictions) soon.push(until);
  for (const { wokenAt } of state.waiters) {
    if (wokenAt === null) continue;
    soon.push(wokenAt + NAME_AGAIN_MS);
    late.push(wokenAt + WINDOW_MS);
  }
  const moments = (late.length > 0 && random.chance(0.3) ? late : soon).filter((moment) => moment > now);
  if (moments.length === 0) return random.between(0, 10);
  return Math.min(Math.max(random.pick(moments) - now + random.pick([-1, 0, 0, 1, 3]), 0), WINDOW_MS + 5);
}
