/** What counts as an answer of the store, and how long one is awaited. */
import { HoldfastError, StoreError } from 'holdfast';
import type { Command, Reply } from 'holdfast/protocol';
import { after, monotonicMs } from '../clock.js';

/** How long an answer is awaited that no wait of the client's bounds. */
export const PATIENCE_MS = 5_000;

/** Within our patience; whatever else becomes of it is a `StoreError`, but for what the library says by itself. */
export async function answered<T>(
  answer: Promise<T>,
  operation: string,
  key: string | undefined,
): Promise<T> {
  let cancel = (): void => undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    cancel = after(PATIENCE_MS, () => reject(unanswered(operation, key)));
  });
  try {
    return await Promise.race([answer, tooLate]);
  } catch (error) {
    throw error instanceof HoldfastError ? error : unanswered(operation, key, error);
  } finally {
    cancel();
  }
}

export function unanswered(operation: string, key?: string, cause?: unknown): StoreError {
  const what = key === undefined ? operation : `${operation} of "${key}"`;
  const message = `The store did not answer the ${what}, so what happened there is unknown. Ask again.`;
  return new StoreError(message, { key, cause, operation });
}

const ANSWERS: Readonly<Record<Command['kind'], readonly Reply['kind'][]>> = {
  claim: ['granted', 'busy', 'withdrawn'],
  renew: ['renewed', 'lost'],
  release: ['released'],
  evict: ['evicted'],
};

/** A store may be anybody's: what is no answer counts as none. */
export function isAnswerTo({ kind }: Command, reply: Reply | null | undefined): boolean {
  return !!reply && Number.isFinite(reply.now) && ANSWERS[kind].includes(reply.kind);
}

/** Counted from before the answered attempt was sent: at least so much is left. */
export function remainingOf(expiresAt: number, now: number, sentMs: number): number {
  return Math.max(0, Math.floor(expiresAt - now - (monotonicMs() - sentMs)));
}
