/**
 * An estimate of the store's time, from the times in its replies. Every reply says that the store's time was between two
 * values somewhere between sending and receiving; so the offset between its clock and this process's monotonic clock lies
 * in an interval, and many replies make that interval small. Whole seconds of a header are enough: when the second
 * changes, the time is exact.
 *
 * The interval grows with time, as clocks drift. Once the wall clock and the monotonic clock disagree, the machine slept
 * or its clock was set: then the time is unknown until the next reply.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Reading } from './register.js';

/** More than two working clocks drift apart. */
export const CLOCK_DRIFT_SHARE = 0.000_5;
/** The two clocks of this process may drift apart this far without a jump. */
const APART_MS = 10;
/** Two clock reads this close count as one. */
const CLOSE_MS = 1;
/** The usual error of an estimate from times that are exact to the millisecond. */
export const USUAL_ERROR_MS = 15;
/** Only a time this fresh lets a claim replace an expired holder. */
const FRESH_MS = 1_000;

/** The store's clock minus the monotonic clock is between these two, in milliseconds. */
interface Offset {
  readonly low: number;
  readonly high: number;
}

const UNKNOWN: Offset = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };

/** An estimate of a server's time, as an interval that each reply makes smaller. */
export class TimeEstimate {
  readonly #clock: Clock;
  /** How far the store's own servers may differ, and how long a suspension may go unnoticed. */
  readonly #allowanceMs: number;
  #offset: (Offset & { readonly atMs: number }) | null = null;
  /** The wall clock minus the monotonic clock. */
  #apartMs = 0;
  #jumps = 0;
  #notedAtMs = Number.NEGATIVE_INFINITY;
  /** When the clocks were last found to have jumped: between request and reply of an earlier sample, this machine slept. */
  #jumpedAtMs = Number.NEGATIVE_INFINITY;

  constructor(allowanceMs = APART_MS, clock: Clock = systemClock) {
    this.#allowanceMs = allowanceMs;
    this.#clock = clock;
    this.#apartMs = this.#compareClocks().apartMs;
  }

  /** Somewhere between these two moments of the monotonic clock, the store's time was between `from` and `until`. */
  note(sentMs: number, receivedMs: number, from: number, until: number): void {
    const apartMs = this.#forgetIfJumped();
    if (sentMs < this.#jumpedAtMs) return;
    this.#apartMs = apartMs;
    const { low, high } = this.#offsetAt(receivedMs);
    const newLow = from - receivedMs;
    const newHigh = until - sentMs;
    const gapMs = Math.max(newLow - high, low - newHigh);
    if (gapMs > this.#allowanceMs) {
      // The reply contradicts the estimate: until the next reply, the time is anywhere between both.
      this.#jumps += 1;
      this.#set(Math.min(low, newLow), Math.max(high, newHigh), receivedMs);
    } else if (gapMs > 0) {
      // Two servers of the store differ a little: the time is in the gap between their times.
      this.#set(Math.min(high, newHigh), Math.max(low, newLow), receivedMs);
    } else this.#set(Math.max(low, newLow), Math.min(high, newHigh), receivedMs);
    this.#notedAtMs = sentMs;
  }

  /** How often a reply contradicted the earlier ones. */
  get jumps(): number {
    return this.#jumps;
  }

  /** At this moment of the monotonic clock, the store's time was at least `from`. */
  noteAtLeast(receivedMs: number, from: number): void {
    this.#forgetIfJumped();
    if (this.#offset === null) return;
    const newLow = from - receivedMs;
    const { low, high } = this.#offsetAt(receivedMs);
    if (newLow > low) this.#set(newLow, Math.max(high, newLow), receivedMs);
  }

  reading(): Reading | null {
    this.#forgetIfJumped();
    if (this.#offset === null) return null;
    const now = this.#clock.monotonicMs();
    const { low, high } = this.#offsetAt(now);
    return {
      earliest: Math.floor(now + low - this.#allowanceMs),
      latest: Math.ceil(now + high + this.#allowanceMs),
    };
  }

  isFresh(): boolean {
    this.#forgetIfJumped();
    return this.#offset !== null && this.#clock.monotonicMs() - this.#notedAtMs <= FRESH_MS;
  }

  /** Returns how far the two clocks of this process are apart. */
  #forgetIfJumped(): number {
    const { apartMs, hasJumped } = this.#compareClocks();
    if (hasJumped) {
      this.#offset = null;
      this.#apartMs = apartMs;
      this.#jumpedAtMs = this.#clock.monotonicMs();
    }
    return apartMs;
  }

  #set(low: number, high: number, atMs: number): void {
    this.#offset = { low, high, atMs };
  }

  #offsetAt(atMs: number): Offset {
    if (this.#offset === null) return UNKNOWN;
    const driftMs = Math.max(0, atMs - this.#offset.atMs) * CLOCK_DRIFT_SHARE;
    return { low: this.#offset.low - driftMs, high: this.#offset.high + driftMs };
  }

  /** A process may be paused between two clock reads, so the closest of several pairs counts. */
  #compareClocks(): { readonly apartMs: number; readonly hasJumped: boolean } {
    let apartMs = 0;
    let closestMs = Number.POSITIVE_INFINITY;
    for (let reads = 0; reads < 3 && closestMs > CLOSE_MS; reads++) {
      const before = this.#clock.monotonicMs();
      const wall = this.#clock.wallMs();
      const errorMs = (this.#clock.monotonicMs() - before) / 2;
      if (errorMs >= closestMs) continue;
      apartMs = wall - before - errorMs;
      closestMs = errorMs;
    }
    return { apartMs, hasJumped: Math.abs(apartMs - this.#apartMs) > APART_MS + closestMs };
  }
}
