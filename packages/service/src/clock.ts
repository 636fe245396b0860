/** Timers and randomness of the service, on the library's clock. */
import { randomFillSync, randomUUID } from 'node:crypto';
import { systemClock } from 'holdfast/clock';

export type Cancel = () => void;

export const { monotonicMs, wallMs, random } = systemClock;

/** Runs after the requests that have arrived by now have been read. */
export const soon = systemClock.afterTurn;

/** Runs once, unless cancelled by the function returned. */
export function after(delayMs: number, run: () => void): Cancel {
  return systemClock.timer(delayMs, run).cancel;
}

/** The result of the work, or `late` if it takes longer than `ms`. The work itself goes on. */
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

const ID_BYTES = 16;
/** Random bytes drawn in advance: a draw costs more than everything else about an id. */
const POOL = Buffer.alloc(256 * ID_BYTES);
let used = POOL.length;

/** 128 random bits, which nobody can guess. */
export function randomId(): string {
  const from = draw();
  return POOL.toString('base64url', from, from + ID_BYTES);
}

/** A whole number below this power of two, at most the 48th, which nobody can guess. */
export function randomBelow(powerOfTwo: number): number {
  return POOL.readUIntBE(draw(), 6) % powerOfTwo;
}

/** The place in the pool of the next random bytes, for one use only. */
function draw(): number {
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  used += ID_BYTES;
  return used - ID_BYTES;
}
