/**
 * Virtual time: a heap of events, run one after the other. Nothing waits for real time.
 *
 * After every event that may run a process's code, one turn of the real event loop lets all promises settle before time
 * moves on, as they would in a process of its own.
 */

export interface ScheduledEvent {
  cancel(): void;
}

class Entry implements ScheduledEvent {
  readonly atMs: number;
  readonly order: number;
  readonly quiet: boolean;
  run: (() => void) | null;

  constructor(atMs: number, order: number, quiet: boolean, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.quiet = quiet;
    this.run = run;
  }

  cancel(): void {
    this.run = null;
  }

  isBefore(other: Entry): boolean {
    return this.atMs < other.atMs || (this.atMs === other.atMs && this.order < other.order);
  }
}

/** More events than this at one moment are an endless loop. */
const AT_ONE_MOMENT_MAX = 200_000;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class Schedule {
  #nowMs = 0;
  #order = 0;
  #atOneMoment = 0;
  #stopped = false;
  readonly #heap: Entry[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): ScheduledEvent {
    return this.#add(delayMs, run, false);
  }

  /** For events that run no code of a process: saves the turn of the event loop. */
  quietlyAfter(delayMs: number, run: () => void): ScheduledEvent {
    return this.#add(delayMs, run, true);
  }

  /** Runs every event up to then. */
  async runUntil(untilMs: number): Promise<void> {
    await turn();
    for (let entry = this.#next(untilMs); entry && !this.#stopped; entry = this.#next(untilMs)) {
      this.#goTo(entry.atMs);
      entry.run?.();
      if (!entry.quiet) await turn();
    }
    if (!this.#stopped) this.#goTo(untilMs);
  }

  /** Ends `runUntil` after the current event. */
  stop(): void {
    this.#stopped = true;
  }

  #goTo(atMs: number): void {
    this.#atOneMoment = atMs > this.#nowMs ? 0 : this.#atOneMoment + 1;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    if (this.#atOneMoment > AT_ONE_MOMENT_MAX) throw new Error(`Time stands still at ${this.#nowMs} ms.`);
  }

  #add(delayMs: number, run: () => void, quiet: boolean): Entry {
    const entry = new Entry(this.#nowMs + Math.max(delayMs, 0), this.#order++, quiet, run);
    this.#heap.push(entry);
    this.#rise(this.#heap.length - 1, entry);
    return entry;
  }

  #next(untilMs: number): Entry | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first || first.atMs > untilMs) return null;
      const last = this.#heap.pop();
      if (last && last !== first) this.#sink(last);
      if (first.run) return first;
    }
  }

  #rise(from: number, entry: Entry): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above];
      if (!parent || !entry.isBefore(parent)) break;
      this.#heap[place] = parent;
      place = above;
    }
    this.#heap[place] = entry;
  }

  #sink(entry: Entry): void {
    const heap = this.#heap;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      let child = heap[below];
      if (!child) break;
      const right = heap[below + 1];
      if (right?.isBefore(child)) {
        child = right;
        below += 1;
      }
      if (!child.isBefore(entry)) break;
      heap[place] = child;
      place = below;
    }
    heap[place] = entry;
  }
}
