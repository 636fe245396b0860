/** The only place of the service that reads clocks, sets timers and draws randomness. */
import { randomBytes, randomUUID } from 'node:crypto';

/** Longer delays fire at once in Node (F12). */
const TIMER_MS_MAX = 2 ** 31 - 1;

export type Cancel = () => void;

export function wallMs(): number {
  return Date.now();
}

export function monotonicMs(): number {
  return performance.now();
}

/** Runs once, unless cancelled by the function returned. */
export function after(delayMs: number, run: () => void): Cancel {
  const timeout = setTimeout(run, Math.min(Math.max(Math.ceil(delayMs), 0), TIMER_MS_MAX));
  return () => clearTimeout(timeout);
}

/** What the work gives, or `late` when that takes longer than this. The work goes on. */
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

/** Runs once all requests that have arrived by now were looked at. */
export function soon(run: () => void): void {
  setImmediate(run);
}

/** From 0 up to, not including, 1. */
export function random(): number {
  return Math.random();
}

/** Unguessable: 128 bits. */
export function randomId(): string {
  return randomBytes(16).toString('base64url');
}

/** The id of a request, in logs and answers. */
export function newRequestId(): string {
  return randomUUID();
}
