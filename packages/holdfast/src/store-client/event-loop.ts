/**
 * Lets the event loop turn. On a store that answers at once (memory, SQLite), and in local handover, one promise
 * settles another for as long as there is work: timers, sockets and the process's own renewals would have to wait.
 *
 * 1. `isBlocked` compares times. At most once in `BLOCKED_MS` it asks to be told of the loop's next turn.
 * 2. When that turn has not come after `BLOCKED_MS`, the loop is blocked, and the caller continues with `afterTurn`.
 *
 * So the loop turns after 2 × `BLOCKED_MS` plus one step. Reading the clock costs most, so callers pass the time where
 * they know it, and short steps read the clock every sixteenth time.
 */
import type { Clock } from '../clock.js';

const BLOCKED_MS = 3;
/** A power of two. */
const SHORT_STEPS = 16;

export class EventLoop {
  readonly #clock: Clock;
  readonly #onTurn = (): void => this.#turned();
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #awaitsTurn = false;
  #steps = 0;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the caller should continue after the loop's next turn. */
  isBlocked(nowMs = this.#clock.monotonicMs()): boolean {
    if (nowMs < this.#nextLookMs) return false;
    if (this.#awaitsTurn) return true;
    this.#nextLookMs = nowMs + BLOCKED_MS;
    this.#awaitTurn();
    return false;
  }

  /** The same for steps of a few microseconds. */
  isBlockedAfterShortSteps(): boolean {
    this.#steps = (this.#steps + 1) % SHORT_STEPS;
    return this.#steps === 0 && this.isBlocked();
  }

  /** Runs after the next turn, in the order of the calls. */
  afterTurn(run: () => void): void {
    this.#waiting.push(run);
    this.#awaitTurn();
  }

  #awaitTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    this.#clock.afterTurn(this.#onTurn);
  }

  #turned(): void {
    this.#awaitsTurn = false;
    this.#nextLookMs = this.#clock.monotonicMs() + BLOCKED_MS;
    for (const run of this.#waiting.splice(0)) run();
  }
}
