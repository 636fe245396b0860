/** Waiting in tests, always with a limit. */
import { type Clock, systemClock } from '../clock.js';

export function pause(ms: number, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(ms, resolve);
  });
}

/** Calls `look` every few milliseconds until it returns something; rejects with `what` after `withinMs`. */
export async function eventually<T>(
  what: string,
  withinMs: number,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const until = systemClock.monotonicMs() + withinMs;
  for (;;) {
    const isLast = systemClock.monotonicMs() >= until;
    // A process that stood still runs its timers before it reads what arrived meanwhile.
    if (isLast) await new Promise<void>((resolve) => systemClock.afterTurn(resolve));
    const found = await look();
    if (found !== undefined) return found;
    if (isLast) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await pause(5);
  }
}
