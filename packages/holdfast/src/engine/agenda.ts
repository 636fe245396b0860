/**
 * One timer for everything that a process has to do later: ten thousand leases cost one timer of the runtime.
 * A binary heap by due time; appointments due at one moment run in one turn, so that what they send travels together.
 */
import type { Clock, Timer } from '../clock.js';

/**
 * Something to do later. Whoever has much of it to do is one itself, and needs no object or function besides.
 * An interface and not a base class: with fields set by one constructor for many classes, making them costs half as
 * much again.
 */
export interface Appointment {
  /** The agenda's: when it is due. */
  atMs: number;
  /** The agenda's: place in the heap; -1 when it is not there. */
  index: number;
  /** Whether it keeps the process alive: somebody awaits what it does. */
  readonly keepAlive: boolean;
  onDue(): void;
}

/** A function called later, by which somebody's waiting is bounded: it keeps the process alive. */
class Call implements Appointment {
  atMs = 0;
  index = -1;
  readonly #run: () => void;

  constructor(run: () => void) {
    this.#run = run;
  }

  get keepAlive(): boolean {
    return true;
  }

  onDue(): void {
    this.#run();
  }
}

export class Agenda {
  readonly #clock: Clock;
  readonly #heap: Appointment[] = [];
  #timer: Timer | null = null;
  #armedForMs = Number.POSITIVE_INFINITY;
  #keptAliveBy = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For what is not worth a class. */
  call(atMs: number, run: () => void): Appointment {
    const call = new Call(run);
    this.schedule(call, atMs);
    return call;
  }

  /** Also moves one that is there already. */
  schedule(appointment: Appointment, atMs: number): void {
    if (appointment.index !== -1) {
      if (appointment.atMs === atMs) return;
      this.cancel(appointment);
    }
    appointment.atMs = atMs;
    this.#place(appointment, this.#heap.length);
    this.#siftUp(appointment.index);
    if (appointment.keepAlive) this.#countAlive(1);
    this.#arm();
  }

  cancel(appointment: Appointment | null): void {
    if (!appointment || appointment.index === -1) return;
    const { index } = appointment;
    const last = this.#heap.pop();
    appointment.index = -1;
    if (last && last !== appointment) {
      this.#place(last, index);
      this.#siftDown(index);
      this.#siftUp(last.index);
    }
    if (appointment.keepAlive) this.#countAlive(-1);
  }

  /** Nothing of it happens any more, but for what somebody awaits: that happens now, so that nobody waits for ever. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const left = this.#heap.splice(0);
    for (const appointment of left) appointment.index = -1;
    this.#keptAliveBy = 0;
    for (const appointment of left) if (appointment.keepAlive) appointment.onDue();
  }

  #countAlive(by: 1 | -1): void {
    const before = this.#keptAliveBy > 0;
    this.#keptAliveBy += by;
    const after = this.#keptAliveBy > 0;
    if (before !== after) this.#timer?.keepAlive(after);
  }

  /** A timer armed too early is left alone: it fires once for nothing, and costs less than setting it anew. */
  #arm(): void {
    const first = this.#heap[0];
    if (!first || first.atMs >= this.#armedForMs) return;
    this.#timer?.cancel();
    this.#armedForMs = first.atMs;
    this.#timer = this.#clock.timer(first.atMs - this.#clock.monotonicMs(), () => this.#runDue());
    this.#timer.keepAlive(this.#keptAliveBy > 0);
  }

  #runDue(): void {
    this.#timer = null;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.monotonicMs();
    try {
      for (let first = this.#heap[0]; first && first.atMs <= nowMs; first = this.#heap[0]) {
        this.cancel(first);
        first.onDue();
      }
    } finally {
      // Whatever one of them threw, the others are still to be done.
      this.#arm();
    }
  }

  #place(appointment: Appointment, index: number): void {
    this.#heap[index] = appointment;
    appointment.index = index;
  }

  #siftUp(from: number): void {
    const appointment = this.#heap[from];
    if (!appointment) return;
    let index = from;
    while (index > 0) {
      const parent = this.#heap[(index - 1) >> 1];
      if (!parent || parent.atMs <= appointment.atMs) break;
      this.#place(parent, index);
      index = (index - 1) >> 1;
    }
    this.#place(appointment, index);
  }

  #siftDown(from: number): void {
    const appointment = this.#heap[from];
    if (!appointment) return;
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      let child = this.#heap[childIndex];
      const right = this.#heap[childIndex + 1];
      if (child && right && right.atMs < child.atMs) {
        child = right;
        childIndex += 1;
      }
      if (!child || child.atMs >= appointment.atMs) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(appointment, index);
  }
}
