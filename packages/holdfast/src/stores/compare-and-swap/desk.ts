/** Where the commands of one key meet that are under way in this process: claims go one after the other. */
import type { Clock } from '../../clock.js';
import { ATTEMPT_MS, type Command, type HoldId } from '../../protocol/index.js';

interface Ended {
  readonly number: number;
  readonly place: number;
}

export class Desk {
  readonly #clock: Clock;
  readonly #ended = new Map<string, Ended>();
  #places = 0;
  #claims: Promise<void> = Promise.resolve();
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

  /**
   * Claims of one process would only race each other. They wait for those before them, but no longer than an attempt
   * may take: what hangs holds nobody up.
   */
  inTurn(work: () => Promise<void>): Promise<void> {
    const own = this.busy === 1 ? work() : this.#atMost(this.#claims).then(work);
    this.#claims = own;
    return own;
  }

  #atMost(before: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.timer(ATTEMPT_MS, resolve);
      timer.keepAlive(false);
      const go = (): void => {
        timer.cancel();
        resolve();
      };
      before.then(go, go);
    });
  }
}
