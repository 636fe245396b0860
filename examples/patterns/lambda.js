// @ts-check
/**
 * AWS Lambda: a job that must not run twice at the same time, however often it is triggered. The sandbox is frozen when
 * the handler returns, and killed at its timeout, so no lease may depend on what happens later:
 * - `wait` and `maxHold` together are shorter than the time that is left: the work is aborted before the timeout is.
 * - `tryWithLock` returns after the release, so that the next invocation finds the lock free.
 * - If the sandbox dies, or is frozen before the store was told of aborted work, the lock is free after `ttl`.
 *
 * For a fleet: HOLDFAST_STORE=dynamodb://REGION/TABLE (made by `holdfast migrate`) instead of a file of one machine.
 */
import { locks } from 'holdfast/env';

process.env.HOLDFAST_STORE ??= 'sqlite:locks.db';

/**
 * @param {{ job: string, url: string }} event
 * @param {{ getRemainingTimeInMillis(): number }} context
 */
export async function handler({ job, url }, context) {
  const leftMs = context.getRemainingTimeInMillis();
  const times = { wait: leftMs * 0.2, maxHold: leftMs * 0.6, ttl: Math.min(leftMs, 10_000) };
  const result = await locks.tryWithLock(
    `job:${job}`,
    ({ signal }) => fetch(url, { method: 'POST', signal }).then((response) => response.status),
    times,
  );
  return result.acquired ? { status: result.value } : { heldBy: result.holders.map(({ owner }) => owner) };
}
