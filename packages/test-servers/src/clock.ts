/** The only file of this package that reads clocks, waits and draws random numbers. */
import { randomBytes } from 'node:crypto';

export const nowMs = (): number => performance.now();

export const wallMs = (): number => Date.now();

/** Ends a request that takes too long. */
export const timeout = (ms: number): AbortSignal => AbortSignal.timeout(ms);

export const randomName = (): string => randomBytes(6).toString('hex');

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Runs once, later. Returns a function that cancels it. */
export function later(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/** An integer from `from` up to, not including, `to`. */
export const draw = (from: number, to: number): number => from + Math.floor(Math.random() * (to - from));

/** Polls until the answer is true. After the limit it rejects, with the last error as the cause. */
export async function until(
  what: string,
  waitMsMax: number,
  ask: () => boolean | Promise<boolean>,
  pauseMs = 15,
): Promise<void> {
  const endMs = nowMs() + waitMsMax;
  for (;;) {
    let refusal: unknown;
    try {
      if (await ask()) return;
    } catch (error) {
      refusal = error;
    }
    if (nowMs() >= endMs) {
      const cause = refusal === undefined ? {} : { cause: refusal };
      throw new Error(`${what}: not within ${waitMsMax} ms`, cause);
    }
    await sleep(pauseMs);
  }
}
