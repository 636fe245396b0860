/** Waiting in tests, always with a limit. */
import { type Clock, systemClock } from '../clock.js';

export function pause(ms: number, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(ms, resolve);
  });
}

/** Looks every few milliseconds until it is so; rejects with `what` after `withinMs`. */
export async function eventually(
  what: string,
  withinMs: number,
  isSo: () => boolean | Promise<boolean>,
): Promise<void> {
  const until = systemClock.monotonicMs() + withinMs;
  for (;;) {
    const isLast = systemClock.monotonicMs() >= until;
    // A process that stood still runs its timers before it reads what arrived meanwhile.
    if (isLast) await new Promise<void>((resolve) => systemClock.afterTurn(resolve));
    if (await isSo()) return;
    if (isLast) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await pause(5);
  }
}
