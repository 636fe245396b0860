/** The only place of the command that reads clocks and sets timers. */

/** Longer delays fire at once in Node (F12). */
const TIMER_MS_MAX = 2 ** 31 - 1;

export function wallMs(): number {
  return Date.now();
}

export function monotonicMs(): number {
  return performance.now();
}

/** Runs once, unless cancelled by the function returned. */
export function after(delayMs: number, run: () => void): () => void {
  const timeout = setTimeout(run, Math.min(Math.max(Math.ceil(delayMs), 0), TIMER_MS_MAX));
  return () => clearTimeout(timeout);
}

/** What came first: the outcome, or `null` when so long has passed. A late failure is of no interest any more. */
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

/** Resolves after so long, or as soon as the signal aborts. */
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
