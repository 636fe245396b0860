/** Timers and randomness of the service, on the library's clock. */
import { randomUUID } from 'node:crypto';
import { systemClock } from 'holdfast/clock';

export type Cancel = () => void;

export const { monotonicMs, wallMs, random, randomId } = systemClock;

/** Runs after the requests that have arrived by now were read. */
export const soon = systemClock.afterTurn;

/** Runs once, unless cancelled by the function returned. */
export function after(delayMs: number, run: () => void): Cancel {
  return systemClock.timer(delayMs, run).cancel;
}

/** The result of the work, or `late` when it takes longer than this. The work itself goes on. */
export async function within<T, L>(ms: number, work: Promise<T>, late: L): Promise<T | L> {
  let cancel: Cancel = () => undefined;
  const tooLate = new Promise<L>((resolve) => {
    cancel = after(ms, () => resolve(late));
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    cancel();
  }
}

/** The id of a request in logs and answers. A UUID, as the contract of /v1 demands. */
export function newRequestId(): string {
  return randomUUID();
}
