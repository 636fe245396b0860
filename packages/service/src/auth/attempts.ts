/**
 * Slows down whoever guesses. Ten wrong credentials from one address are answered 401 as fast as they come; then one
 * every five seconds, the others 429. Only failures are counted and refused: a good key or token is let in, whatever
 * others send from the same address.
 */
import { Bucket, retryAfter } from '../http/bucket.js';
import { Problem } from '../http/problem.js';

const BURST = 10;
const PER_SECOND = 0.2;
const REMEMBERED_MAX = 10_000;

export class Attempts {
  readonly #buckets = new Map<string, Bucket>();

  /** Counts a wrong guess, and throws when it was one too many. */
  failed(who: string): void {
    const bucket = this.#buckets.get(who) ?? new Bucket(PER_SECOND, BURST);
    // Again at the end of the line: the ones that have been quiet the longest are forgotten first.
    this.#buckets.delete(who);
    this.#buckets.set(who, bucket);
    if (this.#buckets.size > REMEMBERED_MAX) this.#forget();
    if (!bucket.take()) throw tooMany(bucket);
  }

  #forget(): void {
    for (const [who, bucket] of this.#buckets) {
      if (this.#buckets.size <= REMEMBERED_MAX && !bucket.isFull) return;
      this.#buckets.delete(who);
    }
  }
}

function tooMany(bucket: Bucket): Problem {
  const headers = retryAfter(bucket.waitMs);
  return new Problem('rate-limited', 'Too many wrong keys or tokens came from this address. Wait.', {
    headers,
  });
}
