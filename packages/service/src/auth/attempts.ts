/**
 * Slows down guessing. Ten wrong credentials from one address are answered 401 at once; then one every five seconds, the others
 * 429. Only failures are counted and refused: a valid API key or JWT is accepted, whatever others send from that address.
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
    // Moved to the end: the addresses without failures for the longest time are forgotten first.
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
  return new Problem('rate-limited', 'Too many wrong API keys or JWTs from this address. Try again later.', {
    headers,
  });
}
