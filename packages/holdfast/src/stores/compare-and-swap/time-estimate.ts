/**
 * An estimate of the store's time, from the times in its replies. Every reply says that the store's time was between two
 * values somewhere between sending and receiving; so the offset between its clock and this process's monotonic clock
 * lies in an interval, and many replies make that interval small. Whole seconds of a header are enough: where the
 * second changes, the time is exact.
 *
 * The interval grows with time, as clocks drift. Once the wall clock and the monotonic clock disagree, the machine slept
 * or its clock was set: then the time is unknown until the next reply.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Reading } from './register.js';

/** More than two working clocks drift apart. */
const DRIFT_SHARE = 0.000_5;
/** The two clocks of this process may drift apart this far without a jump. */
const APART_MS = 10;
/** Two clock reads this close count as one. */
const CLOSE_MS = 1;
/** An expired holder is only replaced by a time this fresh. */
const FRESH_MS = 1_000;

interface Bound {
  /** The store's clock minus the monotonic clock. */
  readonly offsetMs: number;
  readonly atMs: number;
}

export class TimeEstimate {
  readonly #clock: Clock;
  /** How far the store's own servers may differ, and how long a suspension may go unnoticed. */
  readonly #allowanceMs: number;
  #low: Bound | null = null;
  #high: Bound | null = null;
  #apartMs = 0;
  #jumps = 0;
  #notedAtMs = Number.NEGATIVE_INFINITY;

  constructor(allowanceMs = APART_MS, clock: Clock = systemClock) {
    this.#allowanceMs = allowanceMs;
    this.#clock = clock;
  }

  /** Somewhere between these two moments of the monotonic clock, the store's time was between `from` and `until`. */
  note(sentMs: number, receivedMs: number, from: number, until: number): void {
    this.#forgetIfApart();
    const low = this.#lowAt(receivedMs);
    const high = this.#highAt(receivedMs);
    const newLow = from - receivedMs;
    const newHigh = until - sentMs;
    const gapMs = Math.max(newLow - high, low - newHigh);
    if (gapMs > this.#allowanceMs) {
      // A contradiction: the time is anywhere between both, until the next reply.
      this.#jumps += 1;
      this.#set(Math.min(low, newLow), Math.max(high, newHigh), receivedMs);
    } else if (gapMs > 0) {
      // Two servers of the store that differ a little: the time is in the gap between theirs.
      this.#set(Math.min(high, newHigh), Math.max(low, newLow), receivedMs);
    } else this.#set(Math.max(low, newLow), Math.min(high, newHigh), receivedMs);
    this.#notedAtMs = sentMs;
  }

  /** How often a time contradicted the earlier ones. */
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
    return this.#clock.monotonicMs() - this.#notedAtMs <= FRESH_MS && !this.#isApart();
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

  /** A process may be paused between two clock reads: the closest pair counts, and how close it was. */
  #compare(): { readonly apartMs: number; readonly errorMs: number } {
    let closest = { apartMs: 0, errorMs: Number.POSITIVE_INFINITY };
    for (let reads = 0; reads < 3 && closest.errorMs > CLOSE_MS; reads++) {
      const before = this.#clock.monotonicMs();
      const wall = this.#clock.wallMs();
      const errorMs = (this.#clock.monotonicMs() - before) / 2;
      if (errorMs < closest.errorMs) closest = { apartMs: wall - before - errorMs, errorMs };
    }
    return closest;
  }
}
