/**
 * Virtual time: a heap of things to come, run one after the other. Nothing waits for real time.
 *
 * After everything that may have run a process's code, one turn of the real event loop is taken: all promises that
 * can settle have settled before time goes on, as they would have in a process of its own.
 */

export interface Appointment {
  readonly atMs: number;
  cancel(): void;
}

class Slot implements Appointment {
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

  isBefore(other: Slot): boolean {
    return this.atMs < other.atMs || (this.atMs === other.atMs && this.order < other.order);
  }
}

/** So much at one moment is a loop that would never let time go on. */
const AT_ONE_MOMENT_MAX = 200_000;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class Schedule {
  #nowMs = 0;
  #order = 0;
  #atOneMoment = 0;
  #stopped = false;
  readonly #heap: Slot[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, run: () => void): Appointment {
    return this.#add(atMs, run, false);
  }

  /** For what runs no code of a process: the turn of the event loop is spared. */
  quietlyAt(atMs: number, run: () => void): Appointment {
    return this.#add(atMs, run, true);
  }

  /** Runs all that is due up to then. */
  async runUntil(untilMs: number): Promise<void> {
    await turn();
    for (let slot = this.#next(untilMs); slot && !this.#stopped; slot = this.#next(untilMs)) {
      this.#goTo(slot.atMs);
      slot.run?.();
      if (!slot.quiet) await turn();
    }
    if (!this.#stopped) this.#goTo(untilMs);
  }

  /** Ends `runUntil` after the event at hand. */
  stop(): void {
    this.#stopped = true;
  }

  #goTo(atMs: number): void {
    this.#atOneMoment = atMs > this.#nowMs ? 0 : this.#atOneMoment + 1;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    if (this.#atOneMoment > AT_ONE_MOMENT_MAX) throw new Error(`Time stands still at ${this.#nowMs} ms.`);
  }

  #add(atMs: number, run: () => void, quiet: boolean): Slot {
    const slot = new Slot(Math.max(atMs, this.#nowMs), this.#order++, quiet, run);
    this.#heap.push(slot);
    this.#rise(this.#heap.length - 1, slot);
    return slot;
  }

  #next(untilMs: number): Slot | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first || first.atMs > untilMs) return null;
      const last = this.#heap.pop();
      if (last && last !== first) this.#sink(last);
      if (first.run) return first;
    }
  }

  #rise(from: number, slot: Slot): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above];
      if (!parent || !slot.isBefore(parent)) break;
      this.#heap[place] = parent;
      place = above;
    }
    this.#heap[place] = slot;
  }

  #sink(slot: Slot): void {
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
      if (!child.isBefore(slot)) break;
      heap[place] = child;
      place = below;
    }
    heap[place] = slot;
  }
}
