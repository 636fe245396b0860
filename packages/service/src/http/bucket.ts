/** A rate limit with bursts (token bucket). */
import { monotonicMs } from '../clock.js';

export class Bucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #atMs = monotonicMs();

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  get isFull(): boolean {
    this.#fill();
    return this.#tokens >= this.#burst;
  }

  get isEmpty(): boolean {
    this.#fill();
    return this.#tokens < 1;
  }

  /** Takes a token. Returns whether there was one. */
  take(): boolean {
    if (this.isEmpty) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Whether more was spent than there was. */
  get isOverdrawn(): boolean {
    this.#fill();
    return this.#tokens < 0;
  }

  /** Takes this many tokens, future ones included: at most a burst of them. */
  spend(count: number): void {
    this.#fill();
    this.#tokens = Math.max(this.#tokens - count, -this.#burst);
  }

  /** The time until there is a token again. */
  get waitMs(): number {
    this.#fill();
    return Math.max(0, ((1 - this.#tokens) / this.#perSecond) * 1_000);
  }

  #fill(): void {
    const nowMs = monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#atMs) / 1_000) * this.#perSecond);
    this.#atMs = nowMs;
  }
}

/** For a `retry-after` header: whole seconds, at least one. */
export function retryAfter(waitMs: number): { readonly 'retry-after': string } {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
}
