/** Timers of the command, on the library's clock. */
import { systemClock } from 'holdfast/clock';

export const { monotonicMs, wallMs } = systemClock;

/** Runs once, unless cancelled by the function returned. */
export function after(delayMs: number, run: () => void): () => void {
  return systemClock.timer(delayMs, run).cancel;
}

/** The outcome of the work, or `null` when it takes longer than this. The work itself goes on. */
export async function within<T>(limitMs: number, work: Promise<T>): Promise<T | null> {
  let cancel = (): void => undefined;
  const timedOut = new Promise<null>((resolve) => {
    cancel = after(limitMs, () => resolve(null));
  });
  try {
    return await Promise.race([work, timedOut]);
  } finally {
    cancel();
  }
}

/** Resolves after this time, or as soon as the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      cancel();
      signal.removeEventListener('abort', stop);
      resolve();
    };
    const cancel = after(ms, stop);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}
