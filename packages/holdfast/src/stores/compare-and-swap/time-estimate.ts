/**
 * The store's time where it is told only in passing, with its replies. Every reply says that the store's time was
 * between two values somewhere between sending and receiving; so the offset between its clock and this process's
 * monotonic one lies in an interval, and many replies make that interval small. A second read off a header is enough:
 * where it ticks over, it is exact.
 *
 * The interval grows with the time since, as clocks drift. Once the wall clock and the monotonic one no longer go
 * together, the machine slept or its clock was set: then nothing is known until the store tells its time again.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Reading } from './register.js';

/** More than two clocks drift apart that anybody still calls clocks. */
const DRIFT_SHARE = 0.000_5;
/** By so much the two clocks of this process may differ without anything being wrong. */
const APART_MS = 10;
/** Two looks at clocks this close are as good as one. */
const CLOSE_MS = 1;
/** A take-over goes by a time that the store told no longer ago than this. */
const FRESH_MS = 1_000;

interface Bound {
  /** Between the store's clock and the monotonic one. */
  readonly offsetMs: number;
  readonly atMs: number;
}

export class TimeEstimate {
  readonly #clock: Clock;
  /** What the store's own servers may differ by, and what a nap too short to be noticed may hide. */
  readonly #allowanceMs: number;
  #low: Bound | null = null;
  #high: Bound | null = null;
  #apartMs = 0;
  #jumps = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(allowanceMs = APART_MS, clock: Clock = systemClock) {
    this.#allowanceMs = allowanceMs;
    this.#clock = clock;
  }

  /** Somewhere between these two moments of the monotonic clock, the store's time was from `from` to `until`. */
  note(sentMs: number, receivedMs: number, from: number, until: number): void {
    this.#forgetIfApart();
    const low = this.#lowAt(receivedMs);
    const high = this.#highAt(receivedMs);
    const newLow = from - receivedMs;
    const newHigh = until - sentMs;
    const gapMs = Math.max(newLow - high, low - newHigh);
    if (gapMs > this.#allowanceMs) {
      // What contradicts is neither believed nor dropped: the time is anywhere between, until the store tells again.
      this.#jumps += 1;
      this.#set(Math.min(low, newLow), Math.max(high, newHigh), receivedMs);
    } else if (gapMs > 0) {
      // Two of the store's servers, which differ a little: the gap between what they tell, give or take that.
      this.#set(Math.min(high, newHigh), Math.max(low, newLow), receivedMs);
    } else this.#set(Math.max(low, newLow), Math.min(high, newHigh), receivedMs);
    this.#toldAtMs = sentMs;
  }

  /** How often it was told a time that cannot be, by what it was told before. */
  get jumps(): number {
    return this.#jumps;
  }

  /** At this moment of the monotonic clock, the store's time was at least `from`. */
  noteAtLeast(receivedMs: number, from: number): void {
    if (this.#low === null || this.#high === null || this.#isApart()) return;
    const newLow = from - receivedMs;
    if (newLow <= this.#lowAt(receivedMs)) return;
    const high = Math.max(this.#highAt(receivedMs), newLow);
    this.#low = { offsetMs: newLow, atMs: receivedMs };
    this.#high = { offsetMs: high, atMs: receivedMs };
  }

  reading(): Reading | null {
    if (this.#low === null || this.#high === null || this.#isApart()) return null;
    const now = this.#clock.monotonicMs();
    return {
      earliest: Math.floor(now + this.#lowAt(now) - this.#allowanceMs),
      latest: Math.ceil(now + this.#highAt(now) + this.#allowanceMs),
    };
  }

  isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#toldAtMs <= FRESH_MS && !this.#isApart();
  }

  #set(low: number, high: number, atMs: number): void {
    this.#low = { offsetMs: low, atMs };
    this.#high = { offsetMs: high, atMs };
  }

  #lowAt(atMs: number): number {
    if (this.#low === null) return Number.NEGATIVE_INFINITY;
    return this.#low.offsetMs - Math.max(0, atMs - this.#low.atMs) * DRIFT_SHARE;
  }

  #highAt(atMs: number): number {
    if (this.#high === null) return Number.POSITIVE_INFINITY;
    return this.#high.offsetMs + Math.max(0, atMs - this.#high.atMs) * DRIFT_SHARE;
  }

  #isApart(): boolean {
    const { apartMs, errorMs } = this.#compare();
    return Math.abs(apartMs - this.#apartMs) > APART_MS + errorMs;
  }

  #forgetIfApart(): void {
    const { apartMs, errorMs } = this.#compare();
    if (Math.abs(apartMs - this.#apartMs) > APART_MS + errorMs) {
      this.#low = null;
      this.#high = null;
    }
    this.#apartMs = apartMs;
  }

  /** A process may be held up between two looks at clocks: the closest looks count, and how close they were. */
  #compare(): { readonly apartMs: number; readonly errorMs: number } {
    let closest = { apartMs: 0, errorMs: Number.POSITIVE_INFINITY };
    for (let looks = 0; looks < 3 && closest.errorMs > CLOSE_MS; looks++) {
      const before = this.#clock.monotonicMs();
      const wall = this.#clock.wallMs();
      const errorMs = (this.#clock.monotonicMs() - before) / 2;
      if (errorMs < closest.errorMs) closest = { apartMs: wall - before - errorMs, errorMs };
    }
    return closest;
  }
}
