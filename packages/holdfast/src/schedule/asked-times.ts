/**
 * The times of the wall clock whose ticks one process has asked for. When a clock is set back and reaches them again,
 * these ticks are not asked for again. Ticks that it skipped while it was wrong have not been asked for.
 */
interface Span {
  /** Exclusive. */
  readonly fromMs: number;
  toMs: number;
}

const SPANS_MAX = 20;

export class AskedTimes {
  #now: Span;
  #before: readonly Span[] = [];

  constructor(nowMs: number) {
    this.#now = { fromMs: nowMs, toMs: nowMs };
  }

  /** The time up to which all ticks have been asked for, unless the clock is set back. */
  get toMs(): number {
    return this.#now.toMs;
  }

  /** Whether a tick was asked for before the clock was set back. */
  has(ms: number): boolean {
    return this.#before.some(({ fromMs, toMs }) => fromMs < ms && ms <= toMs);
  }

  add(fromMs: number, toMs: number): void {
    if (fromMs > this.#now.toMs) this.#begin(fromMs);
    this.#now.toMs = toMs;
  }

  /** Whether the clock was set back to a time that was never asked for. */
  isSetBack(nowMs: number): boolean {
    if (nowMs >= this.#now.fromMs) return false;
    this.#begin(nowMs);
    return true;
  }

  #begin(ms: number): void {
    if (this.#now.toMs > this.#now.fromMs) this.#before = [...this.#before, this.#now].slice(-SPANS_MAX);
    this.#now = { fromMs: ms, toMs: ms };
  }
}
