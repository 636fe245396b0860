/**
 * The way between one process and the store: slow, and now and then a message is lost, late or doubled.
 * Latency varies, so messages overtake each other without any further fault.
 */

import type { Dice } from './dice.js';
import type { SimulatedProcess } from './process.js';
import type { Schedule } from './schedule.js';
import type { FaultKind, Tally } from './tally.js';

export interface Weather {
  readonly latencyMs: readonly [number, number];
  /** The share of messages and hints that are lost, late or doubled, a third each. */
  readonly faultShare: number;
  /** How much later the late ones come. */
  readonly lateMs: readonly [number, number];
}

export type Load = 'request' | 'reply' | 'hint';

export type Fate = 'carried' | 'lost';

interface Kinds {
  readonly lost: FaultKind;
  readonly late: FaultKind;
  readonly doubled: FaultKind;
}

const KINDS: { readonly [load in Load]: Kinds } = {
  request: { lost: 'request lost', late: 'message late', doubled: 'message doubled' },
  reply: { lost: 'reply lost', late: 'message late', doubled: 'message doubled' },
  hint: { lost: 'hint lost', late: 'hint late', doubled: 'hint doubled' },
};

export class Link {
  readonly process: SimulatedProcess;
  /** When something last went wrong here that concerns a key, and how often it has. */
  readonly trouble = new Map<string, { atMs: number; count: number }>();
  isCut = false;
  isCalm = false;
  /** Hints were wanted here and are not to be had. */
  isDeaf = false;
  /** Added to every message's way while the line is slow. */
  lagMs = 0;
  readonly #schedule: Schedule;
  readonly #dice: Dice;
  readonly #weather: Weather;
  readonly #tally: Tally;

  constructor(process: SimulatedProcess, schedule: Schedule, dice: Dice, weather: Weather, tally: Tally) {
    this.process = process;
    this.#schedule = schedule;
    this.#dice = dice;
    this.#weather = weather;
    this.#tally = tally;
  }

  latencyMs(): number {
    return this.lagMs * this.#dice.next() + this.#dice.scaled(this.#weather.latencyMs);
  }

  get dice(): Dice {
    return this.#dice;
  }

  /** Whether all went well here lately, as far as this key is concerned. */
  troubleSince(key: string, sinceMs: number): boolean {
    return (
      this.isCut ||
      this.isDeaf ||
      this.lagMs > 0 ||
      this.process.phase !== 'running' ||
      (this.trouble.get(key)?.atMs ?? -1) >= sinceMs
    );
  }

  note(keys: Iterable<string>): void {
    for (const key of keys) {
      const count = (this.trouble.get(key)?.count ?? 0) + 1;
      this.trouble.set(key, { atMs: this.#schedule.nowMs, count });
    }
  }

  /** Carries a message once, twice, late or not at all. */
  carry(load: Load, keys: readonly string[], arrive: () => void): Fate {
    const { lateMs, faultShare } = this.#weather;
    const kinds = KINDS[load];
    this.#tally.messages += 1;
    if (this.isCut) {
      this.note(keys);
      return 'lost';
    }
    const draw = this.#dice.next();
    if (this.isCalm || draw >= faultShare) {
      this.#arriveIn(this.latencyMs(), load, arrive);
      return 'carried';
    }
    this.#tally.faulty += 1;
    this.note(keys);
    if (draw < faultShare / 3) {
      this.#tally.fault(kinds.lost);
      return 'lost';
    }
    const again = (): void => {
      this.note(keys);
      arrive();
    };
    const laterMs = this.latencyMs() + this.#dice.scaled(lateMs);
    this.#arriveIn(laterMs, load, again);
    if (draw < (faultShare * 2) / 3) {
      this.#tally.fault(kinds.late);
      return 'carried';
    }
    this.#tally.fault(kinds.doubled);
    this.#arriveIn(this.latencyMs(), load, arrive);
    return 'carried';
  }

  #arriveIn(delayMs: number, load: Load, arrive: () => void): void {
    const atMs = this.#schedule.nowMs + delayMs;
    if (load === 'request') this.#schedule.quietlyAt(atMs, arrive);
    else this.#schedule.at(atMs, () => this.process.deliver(arrive));
  }
}
