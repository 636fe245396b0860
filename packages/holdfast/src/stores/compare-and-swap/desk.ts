/** Where the commands of one key meet that are under way in this process: claims go one after the other. */
import type { Clock, Timer } from '../../clock.js';
import { ATTEMPT_MS, type Busy, type Command, type HoldId, sameHold } from '../../protocol/index.js';

/** With one, two, or more under way: how long after the last one began the next may begin. Calls give up before the last of these. */
const WAITS_MS = [ATTEMPT_MS, 4 * ATTEMPT_MS, 10_000] as const;

interface Ended {
  readonly number: number;
  readonly place: number;
}

interface Told {
  readonly hold: HoldId;
  readonly reply: Busy;
  /** The last batch that had come by then. */
  readonly place: number;
}

export class Desk {
  readonly #clock: Clock;
  readonly #ended = new Map<string, Ended>();
  /** The last busy answer to each process. */
  readonly #told = new Map<string, Told>();
  #places = 0;
  /** Batches of claims that wait for their turn. */
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #startedMs = 0;
  #timer: Timer | null = null;
  /** How many batches are under way. */
  busy = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A batch has come; its place says what came after it. */
  come(commands: readonly Command[]): number {
    this.busy += 1;
    const place = ++this.#places;
    for (const command of commands) {
      if (command.kind !== 'release') continue;
      const { process, number } = command.hold;
      const before = this.#ended.get(process)?.number ?? 0;
      this.#ended.set(process, { number: Math.max(number, before), place });
    }
    return place;
  }

  /** Whether a later batch has ended this hold: a claim that goes on would take what nobody wants any more. */
  isEnded({ process, number }: HoldId, place: number): boolean {
    const ended = this.#ended.get(process);
    return ended !== undefined && ended.place > place && ended.number >= number;
  }

  tell(hold: HoldId, reply: Busy): void {
    this.#told.set(hold.process, { hold, reply, place: this.#places });
  }

  /**
   * The answer to an earlier attempt of the same claim that came while this one waited for its turn. Not for grants: their
   * time counts from before the attempt that is answered.
   */
  toldMeanwhile(hold: HoldId, place: number): Busy | null {
    const told = this.#told.get(hold.process);
    return told && told.place >= place && sameHold(told.hold, hold) ? told.reply : null;
  }

  /**
   * Claims of one process would only race each other, so they go one after the other. One that hangs holds the next up for no
   * longer than an attempt may take. Those after it wait longer: a store that is slow gets no more to do.
   */
  inTurn(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        this.#running += 1;
        this.#startedMs = this.#clock.monotonicMs();
        const over = (): void => {
          this.#running -= 1;
          this.#startNext();
        };
        work().then(
          () => {
            over();
            resolve();
          },
          (error: unknown) => {
            over();
            reject(error);
          },
        );
      });
      if (this.#running === 0) this.#startNext();
      else this.#startInTime();
    });
  }

  #startNext(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#waiting.shift()?.();
    this.#startInTime();
  }

  #startInTime(): void {
    if (this.#waiting.length === 0 || this.#timer) return;
    const waitMs = WAITS_MS[this.#running - 1] ?? WAITS_MS[2];
    const dueMs = this.#startedMs + waitMs;
    const timer = this.#clock.timer(dueMs - this.#clock.monotonicMs(), () => this.#startNext());
    timer.keepAlive(false);
    this.#timer = timer;
  }
}
