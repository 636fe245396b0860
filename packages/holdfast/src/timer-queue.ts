/**
 * All tasks to be done later, on one timer of the runtime: ten thousand leases cost one timer. It is a binary heap by due
 * time. Tasks due at one moment run in one turn, so that their commands share a batch.
 *
 * It also makes the event loop turn, without which no timer runs. On a store that answers at once (memory, SQLite), and in
 * local handover, one promise settles another while there is work: timers, sockets and renewals would wait.
 *
 * 1. `isBlocked` compares times. At most once in `BLOCKED_MS` it asks for a call at the event loop's next turn.
 * 2. If that turn has not come after `BLOCKED_MS`, the loop is blocked, and the caller continues with `afterTurn`.
 *
 * So the loop turns after 2 × `BLOCKED_MS` plus one step. Reading the clock costs most, so callers pass the time if they
 * know it, and short steps read the clock every sixteenth time.
 */
import type { Clock, Timer } from './clock.js';

/** Tasks of one moment run for up to this long before timers and sockets of others run. */
const RUN_MS_MAX = 3;
/** Tasks that run between two readings of the clock. */
const RUN_STEPS = 16;

const BLOCKED_MS = 3;
/** A power of two. */
const SHORT_STEPS = 16;

/** A task to run later. Classes implement it themselves, so that scheduling allocates nothing. */
export interface Task {
  /** Place in the heap, -1 while not scheduled. Written by the queue alone. */
  index: number;
  onDue(): void;
}

class Call implements Task {
  index = -1;
  readonly onDue: () => void;

  constructor(run: () => void) {
    this.onDue = run;
  }
}

export class TimerQueue {
  readonly #clock: Clock;
  // Three columns of one heap, so that comparing times reads no objects of many classes.
  readonly #tasks: Task[] = [];
  readonly #dueMs: number[] = [];
  readonly #keepsAlive: boolean[] = [];
  #timer: Timer | null = null;
  #armedForMs = Number.POSITIVE_INFINITY;
  #keptAliveBy = 0;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #awaitsTurn = false;
  /** Whether the turn is overdue. */
  #isBlocked = false;
  #steps = 0;
  #afterTurn: (() => void)[] = [];
  readonly #onTurn = (): void => {
    this.#awaitsTurn = false;
    this.#isBlocked = false;
    this.#nextLookMs = this.#clock.monotonicMs() + BLOCKED_MS;
    for (const run of this.#afterTurn.splice(0)) run();
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a function once. It is the timeout of an awaited promise, so it keeps the process alive. */
  call(atMs: number, run: () => void): Task {
    const call = new Call(run);
    this.schedule(call, atMs, true);
    return call;
  }

  /** Adds a task, or moves it. `keepAlive`: a caller awaits it, so the process must not end before. */
  schedule(task: Task, atMs: number, keepAlive = false): void {
    if (task.index !== -1) {
      if (this.#dueMs[task.index] === atMs) return;
      this.cancel(task);
    }
    this.#siftUp(this.#tasks.length, task, atMs, keepAlive);
    if (keepAlive && ++this.#keptAliveBy === 1) this.#timer?.keepAlive(true);
    if (atMs < this.#armedForMs) this.#arm();
  }

  /** Infinity when the task is not scheduled. */
  dueMs({ index }: Task): number {
    return this.#dueMs[index] ?? Number.POSITIVE_INFINITY;
  }

  cancel(task: Task): void {
    const { index } = task;
    if (index === -1) return;
    task.index = -1;
    if (this.#keepsAlive[index] && --this.#keptAliveBy === 0) this.#timer?.keepAlive(false);
    const last = this.#tasks.pop();
    const dueMs = this.#dueMs.pop();
    const keepAlive = this.#keepsAlive.pop();
    if (!last || dueMs === undefined || keepAlive === undefined || index === this.#tasks.length) return;
    // The last task fills the gap, and moves to where it belongs. Nothing is above the first; place -1 is slow to read.
    const aboveMs = index > 0 ? (this.#dueMs[(index - 1) >> 1] as number) : dueMs;
    if (aboveMs > dueMs) this.#siftUp(index, last, dueMs, keepAlive);
    else this.#siftDown(index, last, dueMs, keepAlive);
  }

  /** Drops all tasks. Awaited tasks run now, so that no caller waits for ever. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const left = this.#tasks.splice(0);
    const awaited = this.#keepsAlive.splice(0);
    this.#dueMs.length = 0;
    this.#keptAliveBy = 0;
    for (const task of left) task.index = -1;
    left.forEach((task, index) => {
      if (awaited[index]) task.onDue();
    });
  }

  /** Whether the caller should continue after the event loop's next turn. */
  isBlocked(nowMs = this.#clock.monotonicMs()): boolean {
    if (nowMs < this.#nextLookMs) return false;
    if (this.#awaitsTurn) {
      this.#isBlocked = true;
      return true;
    }
    this.#nextLookMs = nowMs + BLOCKED_MS;
    this.#awaitTurn();
    return false;
  }

  /** The same for steps of a few microseconds. Once the loop is blocked, every step waits, so that the loop can turn. */
  isBlockedAfterShortSteps(): boolean {
    if (this.#isBlocked) return true;
    this.#steps = (this.#steps + 1) % SHORT_STEPS;
    return this.#steps === 0 && this.isBlocked();
  }

  /** Runs after the next turn, in the order of the calls. */
  afterTurn(run: () => void): void {
    this.#afterTurn.push(run);
    this.#awaitTurn();
  }

  #awaitTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    this.#clock.afterTurn(this.#onTurn);
  }

  /** A timer that fires too early stays: firing once for nothing is cheaper than setting it again. */
  #arm(): void {
    const firstMs = this.#dueMs[0];
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
      for (let [first] = this.#tasks; first && this.dueMs(first) <= nowMs; [first] = this.#tasks) {
        this.cancel(first);
        first.onDue();
        steps += 1;
        if (steps % RUN_STEPS === 0 && this.#clock.monotonicMs() - nowMs > RUN_MS_MAX) break;
      }
    } finally {
      // If a task throws, the others still run.
      this.#arm();
    }
  }

  /** Both loops swap tasks in place: a number that is passed to a function would be allocated on every step. */
  #siftUp(from: number, task: Task, dueMs: number, keepAlive: boolean): void {
    const tasks = this.#tasks;
    const times = this.#dueMs;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const aboveMs = times[above] as number;
      if (aboveMs <= dueMs) break;
      const other = tasks[above] as Task;
      tasks[index] = other;
      times[index] = aboveMs;
      this.#keepsAlive[index] = this.#keepsAlive[above] as boolean;
      other.index = index;
      index = above;
    }
    tasks[index] = task;
    times[index] = dueMs;
    this.#keepsAlive[index] = keepAlive;
    task.index = index;
  }

  #siftDown(from: number, task: Task, dueMs: number, keepAlive: boolean): void {
    const tasks = this.#tasks;
    const times = this.#dueMs;
    const { length } = tasks;
    let index = from;
    for (let below = 2 * index + 1; below < length; below = 2 * index + 1) {
      if (below + 1 < length && (times[below + 1] as number) < (times[below] as number)) below += 1;
      const belowMs = times[below] as number;
      if (belowMs >= dueMs) break;
      const other = tasks[below] as Task;
      tasks[index] = other;
      times[index] = belowMs;
      this.#keepsAlive[index] = this.#keepsAlive[below] as boolean;
      other.index = index;
      index = below;
    }
    tasks[index] = task;
    times[index] = dueMs;
    this.#keepsAlive[index] = keepAlive;
    task.index = index;
  }
}
