/** Bugs of the line of waiters, each planted around `decide`. */
import { decide, NAME_AGAIN_MS, sameHold, WINDOW_MS } from '../../src/protocol/index.js';
import { bug, leaving, type PlantedBug, seeing } from './planting.js';

export const lineBugs: readonly PlantedBug[] = [
  bug(
    'F20: a dead head wakes nobody: its window never ends',
    /a dead head holds up the next/,
    seeing((state, _command, now) => ({
      ...state,
      waiters: state.waiters.map((waiter) =>
        waiter.wokenAt !== null && now >= waiter.wokenAt + WINDOW_MS
          ? { ...waiter, wokenAt: now - NAME_AGAIN_MS }
          : waiter,
      ),
    })),
  ),
  bug(
    'F32: a lost wake-up: only a release wakes the next waiter',
    /wakes the next waiter/,
    leaving((decision, command) =>
      command.kind === 'release'
        ? decision
        : { ...decision, wakes: decision.wakes.filter(({ why }) => why !== 'turn') },
    ),
  ),
  bug(
    'F32: a waiter whose hint was lost is not named again',
    /wakes the next waiter/,
    leaving((decision, _command, before) => ({
      ...decision,
      wakes: decision.wakes.filter(
        ({ inbox }) => !before.waiters.some((waiter) => waiter.inbox === inbox && waiter.wokenAt !== null),
      ),
    })),
  ),
  bug(
    'holders do not hear that others wait',
    /holders hear that others wait/,
    leaving((decision) => ({ ...decision, wakes: decision.wakes.filter(({ why }) => why !== 'waiting') })),
  ),
  bug('F19: a newcomer passes the line', /nobody overtakes/, (state, command, now) => {
    const place = state?.waiters.findIndex(
      (waiter) => command.kind === 'claim' && sameHold(waiter.hold, command.hold),
    );
    if (!state || command.kind !== 'claim' || place !== -1) return decide(state, command, now);
    const alone = decide({ ...state, waiters: [] }, command, now);
    if (alone.reply.kind !== 'granted') return decide(state, command, now);
    return { ...alone, state: { ...alone.state, waiters: state.waiters } };
  }),
  bug(
    'a waiter that missed its window loses its place',
    /a dead head holds up the next/,
    seeing((state, _command, now) => ({
      ...state,
      waiters: state.waiters.filter(({ wokenAt }) => wokenAt === null || now < wokenAt + WINDOW_MS),
    })),
  ),
];
