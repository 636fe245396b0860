/** Deletes expendable rows from time to time, a bounded number each time. Commands trigger it, and nobody waits for it. */
import { systemClock } from '../../clock.js';

/** Between two clean-ups, while there is more to delete and otherwise. A random share is left out. */
const BUSY_MS = 1_000;
const IDLE_MS = 30_000;
const ROWS_MIN = 200;
const ROWS_MAX = 4_000;

export class CleanUp {
  readonly #run: (rows: number) => Promise<number>;
  #commands = 0;
  #closed = false;
  /** A short-lived process cleans up with a probability, too. */
  #dueMs = systemClock.monotonicMs() + systemClock.random() * IDLE_MS;
  /** The last one's; null where it succeeded. Nobody else is told. */
  error: unknown = null;

  constructor(run: (rows: number) => Promise<number>) {
    this.#run = run;
  }

  step(commands: number): void {
    this.#commands += commands;
    if (this.#closed || systemClock.monotonicMs() < this.#dueMs) return;
    this.#dueMs = Number.POSITIVE_INFINITY;
    // More than are added, so that the table does not grow.
    const rows = Math.min(Math.max(2 * this.#commands, ROWS_MIN), ROWS_MAX);
    this.#commands = 0;
    this.#run(rows).then(
      (deleted) => this.#plan(deleted >= rows ? BUSY_MS : IDLE_MS, null),
      (error: unknown) => this.#plan(IDLE_MS, error),
    );
  }

  close(): void {
    this.#closed = true;
  }

  #plan(afterMs: number, error: unknown): void {
    this.error = error;
    this.#dueMs = systemClock.monotonicMs() + afterMs * (1 - systemClock.random() / 2);
  }
}
