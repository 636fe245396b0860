/**
 * One timer for everything that a process has to do later: ten thousand leases cost one timer of the runtime.
 * A binary heap by due time; appointments due at one moment run in one turn, so that what they send travels together.
 */
import type { Clock, Timer } from '../clock.js';

/** Tasks of one moment run for so long before timers and sockets of others get their turn. */
const RUN_MS_MAX = 3;
/** How many tasks run between two readings of the clock. */
const RUN_STEPS = 16;

/** Something to do later. Whoever has much of it to do is one itself, and needs no object or function besides. */
export interface Appointment {
  /** The agenda's own: its place, -1 when it has none. */
  index: number;
  onDue(): void;
}

class Call implements Appointment {
  index = -1;
  readonly onDue: () => void;

  constructor(run: () => void) {
    this.onDue = run;
  }
}

export class Agenda {
  readonly #clock: Clock;
  // Three columns of one heap: what is compared and counted lies apart from objects of many classes, which are slow
  // to look into.
  readonly #what: Appointment[] = [];
  readonly #whenMs: number[] = [];
  readonly #keepsAlive: boolean[] = [];
  #timer: Timer | null = null;
  #armedForMs = Number.POSITIVE_INFINITY;
  #keptAliveBy = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For what is not worth a class: bounds what somebody awaits, so it keeps the process alive. */
  call(atMs: number, run: () => void): Appointment {
    const call = new Call(run);
    this.schedule(call, atMs, true);
    return call;
  }

  /** Also moves one that is there already. `keepAlive`: somebody awaits what it does, so the process must not end. */
  schedule(appointment: Appointment, atMs: number, keepAlive = false): void {
    const { index } = appointment;
    if (index !== -1) {
      if (this.#whenMs[index] === atMs) return;
      this.cancel(appointment);
    }
    this.#siftUp(this.#what.length, appointment, atMs, keepAlive);
    if (keepAlive) this.#countAlive(1);
    this.#arm();
  }

  /** When it is due; never, if it is not here. */
  dueMs({ index }: Appointment): number {
    return this.#whenMs[index] ?? Number.POSITIVE_INFINITY;
  }

  cancel(appointment: Appointment | null): void {
    const index = appointment?.index ?? -1;
    if (!appointment || index === -1) return;
    const keptAlive = this.#keepsAlive[index];
    appointment.index = -1;
    this.#fill(index);
    if (keptAlive) this.#countAlive(-1);
  }

  /** Nothing of it happens any more, but for what somebody awaits: that happens now, so that nobody waits for ever. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const left = this.#what.splice(0);
    const awaited = this.#keepsAlive.splice(0);
    this.#whenMs.length = 0;
    this.#keptAliveBy = 0;
    for (const appointment of left) appointment.index = -1;
    left.forEach((appointment, index) => {
      if (awaited[index]) appointment.onDue();
    });
  }

  #countAlive(by: 1 | -1): void {
    const before = this.#keptAliveBy > 0;
    this.#keptAliveBy += by;
    const after = this.#keptAliveBy > 0;
    if (before !== after) this.#timer?.keepAlive(after);
  }

  /** A timer armed too early is left alone: it fires once for nothing, and costs less than setting it anew. */
  #arm(): void {
    const firstMs = this.#whenMs[0];
    if (firstMs === undefined || firstMs >= this.#armedForMs) return;
    this.#timer?.cancel();
    this.#armedForMs = firstMs;
    this.#timer = this.#clock.timer(firstMs - this.#clock.monotonicMs(), () => this.#runDue());
    this.#timer.keepAlive(this.#keptAliveBy > 0);
  }

  #runDue(): void {
    this.#timer = null;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.monotonicMs();
    try {
      let steps = 0;
      for (let [first] = this.#what; first && this.dueMs(first) <= nowMs; [first] = this.#what) {
        this.cancel(first);
        first.onDue();
        steps += 1;
        if (steps % RUN_STEPS === 0 && this.#clock.monotonicMs() - nowMs > RUN_MS_MAX) break;
      }
    } finally {
      // Whatever one of them threw, the others are still to be done; so they are when the event loop turns first.
      this.#arm();
    }
  }

  /** Closes the gap that a cancelled one left with the last, and puts that where it belongs. */
  #fill(gap: number): void {
    const last = this.#what.pop();
    const whenMs = this.#whenMs.pop();
    const keepAlive = this.#keepsAlive.pop();
    if (!last || whenMs === undefined || keepAlive === undefined || gap === this.#what.length) return;
    const aboveMs = this.#whenMs[(gap - 1) >> 1];
    if (gap > 0 && aboveMs !== undefined && aboveMs > whenMs) this.#siftUp(gap, last, whenMs, keepAlive);
    else this.#siftDown(gap, last, whenMs, keepAlive);
  }

  #put(index: number, appointment: Appointment, whenMs: number, keepAlive: boolean): void {
    this.#what[index] = appointment;
    this.#whenMs[index] = whenMs;
    this.#keepsAlive[index] = keepAlive;
    appointment.index = index;
  }

  /** False when there is nothing to move. */
  #move(from: number, to: number): boolean {
    const appointment = this.#what[from];
    const whenMs = this.#whenMs[from];
    if (!appointment || whenMs === undefined) return false;
    this.#put(to, appointment, whenMs, this.#keepsAlive[from] ?? false);
    return true;
  }

  #siftUp(from: number, appointment: Appointment, whenMs: number, keepAlive: boolean): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if ((this.#whenMs[above] ?? 0) <= whenMs || !this.#move(above, index)) break;
      index = above;
    }
    this.#put(index, appointment, whenMs, keepAlive);
  }

  #siftDown(from: number, appointment: Appointment, whenMs: number, keepAlive: boolean): void {
    let index = from;
    for (;;) {
      const left = 2 * index + 1;
      const leftMs = this.#whenMs[left] ?? Number.POSITIVE_INFINITY;
      const rightMs = this.#whenMs[left + 1] ?? Number.POSITIVE_INFINITY;
      if (Math.min(leftMs, rightMs) >= whenMs || !this.#move(rightMs < leftMs ? left + 1 : left, index))
        break;
      index = rightMs < leftMs ? left + 1 : left;
    }
    this.#put(index, appointment, whenMs, keepAlive);
  }
}
